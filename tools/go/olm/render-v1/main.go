// Render-v1 prints, as YAML, every object that OLM v1 (operator-controller) would apply for a bundle, or its refusal.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/bundle/source"
	"github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/render"
	"github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/render/certproviders"
	"github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/render/registryv1"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("usage: render-v1 BUNDLE_DIRECTORY INSTALL_NAMESPACE [WATCH_NAMESPACE …]")
	}
	bundle, err := source.FromFS(os.DirFS(arguments[0])).GetBundle()
	if err != nil {
		return err
	}
	objects, err := registryv1.Renderer.Render(bundle, arguments[1],
		render.WithTargetNamespaces(arguments[2:]...),
		render.WithCertificateProvider(certproviders.CertManagerCertificateProvider{}))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "---\n%s", document)
	}
	_, err = text.WriteTo(out)
	return err
}
