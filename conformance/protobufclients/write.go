package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// told prints what came of something: nothing of what a server names by itself.
func told(what string, err error, format string, values ...any) {
	if status, is := err.(apierrors.APIStatus); is {
		fmt.Printf("%s: %d %s\n", what, status.Status().Code, status.Status().Reason)
	} else if err != nil {
		fmt.Printf("%s: %v\n", what, err)
	} else {
		fmt.Printf("%s: "+format+"\n", append([]any{what}, values...)...)
	}
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"run": "clients"}}
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
		Spec:       podSpec(),
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways,
		Containers: []corev1.Container{{
			Name: "c", Image: "registry.example/image:1", Env: []corev1.EnvVar{{Name: "A", Value: "ü"}},
		}},
	}
}

func (c *client) write(ctx context.Context) error {
	core := c.typed.CoreV1()
	_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: named(namespace)}, metav1.CreateOptions{})
	told("create namespace", err, "made")
	_, err = core.ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: named("default")}, metav1.CreateOptions{})
	told("create service account", err, "made")
	c.maps(ctx)
	c.leases(ctx)
	c.deployments(ctx)
	c.pods(ctx)
	c.reviews(ctx)
	c.documents()
	return c.byMetadata(ctx)
}

func (c *client) maps(ctx context.Context) {
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	first := &corev1.ConfigMap{ObjectMeta: named("first"), Data: map[string]string{"k": "v", "b": "<&>"}, BinaryData: map[string][]byte{"raw": {0, 1, 255}}}
	made, err := maps.Create(ctx, first, metav1.CreateOptions{})
	told("create map", err, "%v %v", made.Data, made.BinaryData)
	_, err = maps.Create(ctx, first, metav1.CreateOptions{})
	told("create map again", err, "made twice")
	made.Data["more"] = "yes"
	updated, err := maps.Update(ctx, made, metav1.UpdateOptions{FieldManager: "me"})
	told("update map", err, "%v", updated.Data)
	_, err = maps.Update(ctx, made, metav1.UpdateOptions{})
	told("update map from before", err, "no conflict")
	for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
		patched, err := maps.Patch(ctx, "first", kind, []byte(`{"data":{"patched":"`+string(kind)+`"}}`), metav1.PatchOptions{})
		told("patch map", err, "%v", patched.Data)
	}
	dry, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("dry")}, metav1.CreateOptions{DryRun: []string{"All"}})
	told("create map dry", err, "%s", dry.Name)
	for _, name := range []string{"a", "b", "c", "d"} {
		_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named(name)}, metav1.CreateOptions{})
		told("create map "+name, err, "made")
	}
	wrong := types.UID("wrong")
	err = maps.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	told("delete map with a wrong uid", err, "deleted")
	err = maps.Delete(ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
	told("delete map", err, "deleted")
	err = maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=b"})
	told("delete maps", err, "deleted")
	secret, err := c.typed.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: named("secret"), StringData: map[string]string{"s": "t"}, Type: corev1.SecretTypeOpaque}, metav1.CreateOptions{})
	told("create secret", err, "%v %v", secret.Data, secret.StringData)
	role, err := c.typed.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: named("role"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}, metav1.CreateOptions{})
	told("create role", err, "%v", role.Rules)
}

func (c *client) leases(ctx context.Context) {
	leases := c.typed.CoordinationV1().Leases(namespace)
	when := metav1.NewMicroTime(metav1.Date(2026, 1, 2, 3, 4, 5, 678_901_000, metav1.Now().UTC().Location()).Time)
	lease := &coordinationv1.Lease{ObjectMeta: named("lease"), Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("me"), LeaseDurationSeconds: ptr.To[int32](40), RenewTime: &when}}
	made, err := leases.Create(ctx, lease, metav1.CreateOptions{})
	told("create lease", err, "%s %v", *made.Spec.HolderIdentity, made.Spec.RenewTime.UTC())
	made.Spec.LeaseTransitions = ptr.To[int32](3)
	made, err = leases.Update(ctx, made, metav1.UpdateOptions{})
	told("update lease", err, "%d %v", *made.Spec.LeaseTransitions, made.Spec.RenewTime.UTC())
}

func (c *client) deployments(ctx context.Context) {
	deployments := c.typed.AppsV1().Deployments(namespace)
	spec := appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}, Template: template()}
	made, err := deployments.Create(ctx, &appsv1.Deployment{ObjectMeta: named("deployment"), Spec: spec}, metav1.CreateOptions{})
	told("create deployment", err, "%d %v", *made.Spec.Replicas, made.Spec.Template.Spec.Containers[0].Env)
	made.Status.Replicas, made.Status.ObservedGeneration = 2, 1
	made, err = deployments.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	told("update status", err, "%d %d", made.Status.Replicas, made.Status.ObservedGeneration)
	scale, err := deployments.GetScale(ctx, "deployment", metav1.GetOptions{})
	told("get scale", err, "%d %d %s", scale.Spec.Replicas, scale.Status.Replicas, scale.Status.Selector)
	scale.Spec.Replicas = 5
	scale, err = deployments.UpdateScale(ctx, "deployment", scale, metav1.UpdateOptions{})
	told("update scale", err, "%d", scale.Spec.Replicas)
}

func (c *client) pods(ctx context.Context) {
	core := c.typed.CoreV1()
	_, err := core.Nodes().Create(ctx, &corev1.Node{ObjectMeta: named("clients-node")}, metav1.CreateOptions{})
	told("create node", err, "made")
	for _, name := range []string{"pod", "evicted"} {
		pod, err := core.Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: named(name), Spec: podSpec()}, metav1.CreateOptions{})
		told("create pod", err, "%s %v", pod.Name, pod.Spec.Containers[0].Env)
	}
	err = core.Pods(namespace).Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: "clients-node"}}, metav1.CreateOptions{})
	told("bind pod", err, "bound")
	pod, err := core.Pods(namespace).Get(ctx, "pod", metav1.GetOptions{})
	told("get pod", err, "%s", pod.Spec.NodeName)
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "evicted", Namespace: namespace}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}}
	told("evict pod", core.Pods(namespace).EvictV1(ctx, eviction), "evicted")
	_, err = core.Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: named("UPPER"), Spec: podSpec()}, metav1.CreateOptions{})
	told("create pod of a bad name", err, "made")
}

func (c *client) reviews(ctx context.Context) {
	attributes := &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "get", Resource: "pods"}
	self, err := c.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}, metav1.CreateOptions{})
	told("may I", err, "%v %v", self.Status.Allowed, self.Spec.ResourceAttributes)
	_, err = c.typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	told("who am I", err, "told")
}

// documents are asked for in forms of their own: OpenAPI in protobuf, as clients did before version 3 of it.
func (c *client) documents() {
	described, err := c.typed.Discovery().OpenAPISchema()
	told("describe", err, "%d definitions, %d paths", len(described.GetDefinitions().GetAdditionalProperties()), len(described.GetPaths().GetPath()))
	groups, resources, err := c.typed.Discovery().ServerGroupsAndResources()
	told("discover", err, "%d groups, %d versions", len(groups), len(resources))
}

func (c *client) byMetadata(ctx context.Context) error {
	maps := c.metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
	patched, err := maps.Patch(ctx, "c", types.MergePatchType, []byte(`{"metadata":{"annotations":{"by":"metadata"}}}`), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	told("patch metadata", nil, "%v", patched.Annotations)
	told("delete by metadata", maps.Delete(ctx, "d", metav1.DeleteOptions{}), "deleted")
	return nil
}
