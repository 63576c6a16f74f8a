// Program cert-manager runs one of cert-manager's three processes: controller, webhook or cainjector.
//
// Its own programs are modules that the module proxy does not have, so this one puts the same packages together. The
// controller has the issuers `ca` and `selfSigned`. Options are environment variables: KUBECONFIG, and for the webhook
// PORT and HEALTH_PORT. The process stops at SIGINT or SIGTERM.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	config "github.com/cert-manager/cert-manager/internal/apis/config/webhook"
	"github.com/cert-manager/cert-manager/internal/webhook"
	cmscheme "github.com/cert-manager/cert-manager/pkg/client/clientset/versioned/scheme"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/util"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	apireg "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// The namespace and the Secret of the webhook's CA that cert-manager's chart has by default.
const (
	namespace = "cert-manager"
	webhookCA = "cert-manager-webhook-ca"
)

// The flags' defaults of cert-manager's own programs.
const (
	minimumBackoff = time.Hour
	maximumBackoff = 32 * time.Hour
	leafDuration   = 7 * 24 * time.Hour
	workers        = 5
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logf.Log)
	if err := run(logf.NewContext(ctx, logf.Log)); err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	processes := map[string]func(context.Context, string) error{
		"controller": runController, "webhook": runWebhook, "cainjector": runInjector,
	}
	if len(os.Args) != 2 || processes[os.Args[1]] == nil {
		return fmt.Errorf("usage: cert-manager controller|webhook|cainjector")
	}
	return processes[os.Args[1]](ctx, os.Getenv("KUBECONFIG"))
}

func runController(ctx context.Context, kubeconfig string) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:    kubeconfig,
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: namespace},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: minimumBackoff,
			CertificateRequestMaximumBackoffDuration: maximumBackoff,
		},
	})
	if err != nil {
		return err
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	stopped := make(chan error)
	known := controller.Known()
	for name, construct := range known {
		loop, err := construct(factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		go func() { stopped <- loop.Run(workers, ctx) }()
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	for range known {
		if err := <-stopped; err != nil {
			return err
		}
	}
	return nil
}

func runWebhook(ctx context.Context, kubeconfig string) error {
	port, err := strconv.ParseInt(os.Getenv("PORT"), 10, 32)
	if err != nil {
		return fmt.Errorf("PORT: %w", err)
	}
	healthPort, err := strconv.ParseInt(os.Getenv("HEALTH_PORT"), 10, 32)
	if err != nil {
		return fmt.Errorf("HEALTH_PORT: %w", err)
	}
	options := config.WebhookConfiguration{
		KubeConfig: kubeconfig, SecurePort: int32(port), HealthzPort: int32(healthPort), MetricsListenAddress: "0",
	}
	dynamic := &options.TLSConfig.Dynamic
	dynamic.SecretNamespace, dynamic.SecretName = namespace, webhookCA
	dynamic.DNSNames, dynamic.LeafDuration = []string{"localhost"}, leafDuration
	server, err := webhook.NewCertManagerWebhookServer(logf.Log, options)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

func runInjector(ctx context.Context, kubeconfig string) error {
	client, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kscheme.AddToScheme, cmscheme.AddToScheme, apiext.AddToScheme, apireg.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	// Its field manager is the name in the user agent.
	manager, err := ctrl.NewManager(util.RestConfigWithUserAgent(client, "cainjector"), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	options := cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.CustomResourceDefinitionName:       true,
			cainjector.APIServiceName:                     true,
		},
	}
	if err := cainjector.RegisterAllInjectors(ctx, manager, options); err != nil {
		return err
	}
	return manager.Start(ctx)
}
