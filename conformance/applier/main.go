// Applies as Go clients do, by typed, dynamic and metadata clients, in JSON and in protobuf, and reads back what a manager
// owns as operators do before they apply again. Prints one line for each answer, without what differs by nature; the same
// lines are expected of every server.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	scaleac "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var gadgets = schema.GroupVersionResource{Group: "apply.example.com", Version: "v1", Resource: "gadgets"}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of the server")
	namespace := flag.String("namespace", "", "which exists")
	flag.Parse()
	base, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	base.UserAgent = "applier/1.0"
	base.QPS = -1
	for _, form := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		config := rest.CopyConfig(base)
		config.ContentType = form
		config.AcceptContentTypes = form + "," + runtime.ContentTypeJSON
		short := form[strings.LastIndex(form, ".")+1:]
		if form == runtime.ContentTypeJSON {
			short = "json"
		}
		run := &applier{form: short, namespace: *namespace, ctx: context.Background()}
		clients := kubernetes.NewForConfigOrDie(config)
		run.configMaps(clients)
		run.deployments(clients)
		run.nodes(clients)
	}
	run := &applier{form: "dynamic", namespace: *namespace, ctx: context.Background()}
	run.gadgets(dynamic.NewForConfigOrDie(base))
	run.metadata(metadata.NewForConfigOrDie(base))
}

type applier struct {
	form      string
	namespace string
	ctx       context.Context
}

func by(manager string) metav1.ApplyOptions { return metav1.ApplyOptions{FieldManager: manager} }
func forced(manager string) metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: manager, Force: true}
}

func (a *applier) configMaps(clients kubernetes.Interface) {
	name := "map-" + a.form
	maps := clients.CoreV1().ConfigMaps(a.namespace)
	a.say("create", of(maps.Apply(a.ctx, coreac.ConfigMap(name, a.namespace).WithData(map[string]string{"x": "1", "y": "1"}), by("one"))))
	a.say("share", of(maps.Apply(a.ctx, coreac.ConfigMap(name, a.namespace).WithData(map[string]string{"x": "1"}).WithLabels(map[string]string{"l": "1"}), by("two"))))
	a.say("conflict", of(maps.Apply(a.ctx, coreac.ConfigMap(name, a.namespace).WithData(map[string]string{"x": "2", "y": "2"}), by("three"))))
	held, err := maps.Apply(a.ctx, coreac.ConfigMap(name, a.namespace).WithData(map[string]string{"y": "2"}), forced("three"))
	a.say("force", said{held, err})
	if err == nil {
		for _, manager := range []string{"one", "two", "three", "four"} {
			a.say("extract "+manager, of(coreac.ExtractConfigMap(held, manager)))
		}
		held.Data["z"] = "1"
		a.say("update", of(maps.Update(a.ctx, held, metav1.UpdateOptions{})))
	}
	// Read, change, apply: what was not read as one's own is given up.
	if read, err := maps.Get(a.ctx, name, metav1.GetOptions{}); err == nil {
		if mine, err := coreac.ExtractConfigMap(read, "one"); err == nil {
			a.say("apply what was extracted", of(maps.Apply(a.ctx, mine.WithData(map[string]string{"w": "1"}), by("one"))))
		}
	}
	a.say("give up", of(maps.Apply(a.ctx, coreac.ConfigMap(name, a.namespace), by("one"))))
	a.say("patch", of(maps.Patch(a.ctx, name, types.StrategicMergePatchType, []byte(`{"data":{"p":"1"}}`), metav1.PatchOptions{FieldManager: "patcher"})))
	_, err = maps.Patch(a.ctx, name, types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"p":"2"}}`), metav1.PatchOptions{FieldManager: "four"})
	a.say("raw apply", said{nil, err})
	_, err = maps.Apply(a.ctx, coreac.ConfigMap(name, a.namespace), metav1.ApplyOptions{})
	a.say("without a manager", said{nil, err})
}

func (a *applier) deployments(clients kubernetes.Interface) {
	name := "web-" + a.form
	labels := map[string]string{"app": "web"}
	container := coreac.Container().WithName("main").WithImage("registry.example/image:1").WithImagePullPolicy("Always").
		WithTerminationMessagePath("/x").WithTerminationMessagePolicy("File").
		WithPorts(coreac.ContainerPort().WithContainerPort(80).WithProtocol("TCP")).
		WithEnv(coreac.EnvVar().WithName("A").WithValue("1"))
	whole := appsac.Deployment(name, a.namespace).WithSpec(appsac.DeploymentSpec().WithReplicas(1).
		WithProgressDeadlineSeconds(600).WithRevisionHistoryLimit(10).
		WithSelector(metaac.LabelSelector().WithMatchLabels(labels)).
		WithStrategy(appsac.DeploymentStrategy().WithType("Recreate")).
		WithTemplate(coreac.PodTemplateSpec().WithLabels(labels).WithSpec(coreac.PodSpec().WithContainers(container).
			WithDNSPolicy("ClusterFirst").WithRestartPolicy("Always").WithSchedulerName("default-scheduler").
			WithSecurityContext(coreac.PodSecurityContext().WithRunAsUser(1)).WithTerminationGracePeriodSeconds(30))))
	deployments := clients.AppsV1().Deployments(a.namespace)
	a.say("deployment", of(deployments.Apply(a.ctx, whole, by("one"))))
	a.say("apply scale", of(deployments.ApplyScale(a.ctx, name, scaleac.Scale().WithName(name).WithNamespace(a.namespace).WithSpec(scaleac.ScaleSpec().WithReplicas(3)), forced("scaler"))))
	condition := appsac.DeploymentCondition().WithType("Available").WithStatus("True").WithReason("r").WithMessage("m").
		WithLastUpdateTime(metav1.Unix(981173106, 0)).WithLastTransitionTime(metav1.Unix(981173106, 0))
	held, err := deployments.ApplyStatus(a.ctx, appsac.Deployment(name, a.namespace).WithStatus(appsac.DeploymentStatus().WithReplicas(2).WithConditions(condition)), by("controller"))
	a.say("apply status", said{held, err})
	if err == nil {
		a.say("extract", of(appsac.ExtractDeployment(held, "one")))
		a.say("extract status", of(appsac.ExtractDeploymentStatus(held, "controller")))
		a.say("extract scale", of(appsac.ExtractDeploymentFrom(held, "scaler", "scale")))
	}
	side := coreac.Container().WithName("main").WithEnv(coreac.EnvVar().WithName("B").WithValue("1"))
	part := appsac.Deployment(name, a.namespace).WithSpec(appsac.DeploymentSpec().WithTemplate(coreac.PodTemplateSpec().WithSpec(coreac.PodSpec().WithContainers(side))))
	a.say("one variable more", of(deployments.Apply(a.ctx, part, by("two"))))
	a.say("conflict", of(deployments.Apply(a.ctx, whole, by("one"))))
	a.say("variable gone", of(deployments.Apply(a.ctx, appsac.Deployment(name, a.namespace), by("two"))))
	if held, err := deployments.Get(a.ctx, name, metav1.GetOptions{}); err == nil {
		held.Status.Replicas = 4
		a.say("update status", of(deployments.UpdateStatus(a.ctx, held, metav1.UpdateOptions{FieldManager: "old"})))
	}
}

func (a *applier) nodes(clients kubernetes.Interface) {
	name := "node-" + a.form + "-" + a.namespace
	nodes := clients.CoreV1().Nodes()
	taint := coreac.Taint().WithKey("node.kubernetes.io/not-ready").WithEffect("NoSchedule")
	a.say("node", of(nodes.Apply(a.ctx, coreac.Node(name).WithLabels(map[string]string{"l": "1"}).WithSpec(coreac.NodeSpec().WithTaints(taint)), by("one"))))
	condition := coreac.NodeCondition().WithType("Ready").WithStatus("True").WithReason("r").WithMessage("m").
		WithLastHeartbeatTime(metav1.Unix(981173106, 0)).WithLastTransitionTime(metav1.Unix(981173106, 0))
	a.say("node status", of(nodes.ApplyStatus(a.ctx, coreac.Node(name).WithStatus(coreac.NodeStatus().WithConditions(condition)), by("kubelet"))))
}

func (a *applier) gadgets(client dynamic.Interface) {
	at := client.Resource(gadgets).Namespace(a.namespace)
	object := func(fields map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apply.example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "g"},
			"spec": fields,
		}}
	}
	a.say("gadget", of(at.Apply(a.ctx, "g", object(map[string]any{"tags": []any{"a", "b"}, "count": int64(1)}), by("one"))))
	a.say("gadget shared", of(at.Apply(a.ctx, "g", object(map[string]any{"tags": []any{"b", "c"}}), by("two"))))
	a.say("gadget conflict", of(at.Apply(a.ctx, "g", object(map[string]any{"count": int64(2)}), by("two"))))
	state := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apply.example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "g"},
		"status": map[string]any{"phase": "x"},
	}}
	a.say("gadget status", of(at.ApplyStatus(a.ctx, "g", state, by("one"))))
	a.say("gadget wrong", of(at.Apply(a.ctx, "g", object(map[string]any{"count": "x"}), by("two"))))
}

func (a *applier) metadata(client metadata.Interface) {
	body := []byte(`{"apiVersion":"apply.example.com/v1","kind":"Gadget","metadata":{"name":"g","labels":{"l":"1"}}}`)
	at := client.Resource(gadgets).Namespace(a.namespace)
	a.say("metadata", of(at.Patch(a.ctx, "g", types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "labels"})))
}

// said is what a call returns, in one piece.
type said struct {
	answer any
	err    error
}

func of[T any](answer T, err error) said { return said{answer, err} }

func (a *applier) say(what string, got said) {
	fmt.Printf("%s %s: %s\n", a.form, what, told(got.answer, got.err))
}

func told(answer any, err error) string {
	var refused apierrors.APIStatus
	if errors.As(err, &refused) {
		answer = refused.Status()
	} else if err != nil {
		return "error " + err.Error()
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return "error " + err.Error()
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return "error " + err.Error()
	}
	plain(tree)
	text, _ = json.Marshal(tree)
	return string(text)
}

// plain takes away what differs by nature, and puts managers and causes into the order of their names.
func plain(value any) {
	switch held := value.(type) {
	case map[string]any:
		for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "time"} {
			delete(held, key)
		}
		for key, inner := range held {
			plain(inner)
			list, isList := inner.([]any)
			if isList && (key == "managedFields" || key == "causes") {
				sort.Slice(list, func(i, j int) bool { return spelled(list[i]) < spelled(list[j]) })
			}
		}
	case []any:
		for _, inner := range held {
			plain(inner)
		}
	}
}

func spelled(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}
