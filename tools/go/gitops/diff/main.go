// Program gitops-diff prints how objects differ from their manifests according to Argo CD's own code (gitops-engine).
//
// It reads {"manager": "…", "schema": …, "objects": [{"manifest": …, "live": …, "applied": …}, …]} from stdin. The schema
// is the API server's OpenAPI v2 document. `applied` is the result of a server-side apply of the manifest as `manager`
// with a dry run. It writes [{"default": …, "structuredMerge": …, "serverSide": …}, …] to stdout. Each is null if there
// is no difference. Otherwise, it has the object as it is ("live") and as it should be ("predicted").
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/util/proto"
)

type input struct {
	Manager string          `json:"manager"`
	Schema  json.RawMessage `json:"schema"`
	Objects []object        `json:"objects"`
}

type object struct {
	Manifest *unstructured.Unstructured `json:"manifest"`
	Live     *unstructured.Unstructured `json:"live"`
	Applied  dryRun                     `json:"applied"`
}

type difference struct {
	Live      json.RawMessage `json:"live"`
	Predicted json.RawMessage `json:"predicted"`
}

// dryRun is the result of a server-side apply with a dry run, which the reader of this program's output has made.
type dryRun struct{ json.RawMessage }

func (applied dryRun) Run(context.Context, *unstructured.Unstructured, string) (string, error) {
	return string(applied.RawMessage), nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gitops-diff:", err)
		os.Exit(1)
	}
}

func run() error {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	parser, err := newParser(in.Schema)
	if err != nil {
		return err
	}
	results := []map[string]*difference{}
	for _, each := range in.Objects {
		found := map[string]*difference{}
		for name, options := range map[string][]diff.Option{
			"default":         {},
			"structuredMerge": {diff.WithStructuredMergeDiff(true)},
			"serverSide":      {diff.WithServerSideDiff(true), diff.WithServerSideDryRunner(each.Applied)},
		} {
			options = append(options, diff.WithGVKParser(parser), diff.WithManager(in.Manager))
			if found[name], err = compare(each, options); err != nil {
				return fmt.Errorf("%s/%s: %w", each.Manifest.GetKind(), each.Manifest.GetName(), err)
			}
		}
		results = append(results, found)
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

func newParser(schema []byte) (*managedfields.GvkParser, error) {
	document, err := openapi_v2.ParseDocument(schema)
	if err != nil {
		return nil, err
	}
	models, err := proto.NewOpenAPIData(document)
	if err != nil {
		return nil, err
	}
	return managedfields.NewGVKParser(models, false)
}

func compare(each object, options []diff.Option) (*difference, error) {
	// The comparison changes its arguments.
	result, err := diff.Diff(each.Manifest.DeepCopy(), each.Live.DeepCopy(), options...)
	if err != nil || !result.Modified {
		return nil, err
	}
	return &difference{result.NormalizedLive, result.PredictedLive}, nil
}
