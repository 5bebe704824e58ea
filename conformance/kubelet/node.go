// What the API server knows of the node: the Node object, and that its pods run.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

const (
	lookAgain = 300 * time.Millisecond
	podIP     = "192.0.2.10"
)

type node struct {
	name   string
	port   int32
	client kubernetes.Interface

	mutex sync.Mutex
	pods  map[string]*pod
}

// pod returns what the containers of this pod share; it begins with the first look at it.
func (n *node) pod(namespace, name string) *pod {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	key := namespace + "/" + name
	if n.pods[key] == nil {
		n.pods[key] = newPod(name)
	}
	return n.pods[key]
}

func (n *node) register(ctx context.Context) error {
	now := metav1.Now()
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	status := corev1.NodeStatus{
		Capacity: amounts, Allocatable: amounts,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}, {Type: corev1.NodeHostName, Address: n.name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: n.port}},
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "StandIn", LastHeartbeatTime: now, LastTransitionTime: now,
		}},
	}
	nodes := n.client.CoreV1().Nodes()
	labels := map[string]string{corev1.LabelHostname: n.name}
	made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: labels}, Status: status}
	_, err := nodes.Create(ctx, made, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found, err := nodes.Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	found.Status = status
	_, err = nodes.UpdateStatus(ctx, found, metav1.UpdateOptions{})
	return err
}

// keepRunning says of each pod of this node that it runs: port-forward asks for it.
func (n *node) keepRunning(ctx context.Context) {
	mine := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", n.name).String()}
	for ctx.Err() == nil {
		list, err := n.client.CoreV1().Pods("").List(ctx, mine)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		} else {
			for index := range list.Items {
				n.run(ctx, &list.Items[index])
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
	}
}

func (n *node) run(ctx context.Context, found *corev1.Pod) {
	pods := n.client.CoreV1().Pods(found.Namespace)
	if found.DeletionTimestamp != nil {
		zero := int64(0)
		precondition := metav1.NewUIDPreconditions(string(found.UID))
		_ = pods.Delete(ctx, found.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: precondition})
		n.mutex.Lock()
		delete(n.pods, found.Namespace+"/"+found.Name)
		n.mutex.Unlock()
		return
	}
	if found.Status.Phase == corev1.PodRunning {
		return
	}
	now := metav1.Now()
	found.Status.Phase, found.Status.StartTime = corev1.PodRunning, &now
	found.Status.HostIP, found.Status.PodIP = "127.0.0.1", podIP
	found.Status.PodIPs = []corev1.PodIP{{IP: podIP}}
	found.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}
	found.Status.ContainerStatuses = nil
	started := true
	for _, container := range found.Spec.Containers {
		found.Status.ContainerStatuses = append(found.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	if _, err := pods.UpdateStatus(ctx, found, metav1.UpdateOptions{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
