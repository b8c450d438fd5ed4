// Command kube is a whole Kubernetes control plane in one file: etcd, kube-apiserver,
// kube-controller-manager and kubectl, linked from their published modules. It is a
// test tool, built and driven by `cargo xtask kube`, and never ships with the product.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

const usage = "usage: kube etcd|apiserver|controller-manager|kubectl [flags], or kube certs DIR"

func main() {
	component, args := split(os.Args)
	// Each component reads os.Args itself, the way it does in its own binary.
	os.Args = append([]string{component}, args...)

	var command *cobra.Command
	switch component {
	case "certs":
		certs(args)
		return
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "apiserver":
		command = apiserver.NewAPIServerCommand()
	case "controller-manager":
		command = controllermanager.NewControllerManagerCommand()
	case "kubectl":
		command = kubectl.NewDefaultKubectlCommand()
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}

func certs(args []string) {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err := writeCerts(args[0]); err != nil {
		fmt.Fprintf(os.Stderr, "cannot write certificates to %s: %v\n", args[0], err)
		os.Exit(1)
	}
}

// split names the component and its arguments. A link called `kubectl` is kubectl, so that
// scripts and plugins find the real one under its usual name.
func split(argv []string) (string, []string) {
	if strings.HasSuffix(argv[0], "kubectl") {
		return "kubectl", argv[1:]
	}
	if len(argv) < 2 {
		return "", nil
	}
	return argv[1], argv[2:]
}
