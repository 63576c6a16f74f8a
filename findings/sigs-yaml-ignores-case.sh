#!/usr/bin/env bash
# The strict YAML decoder of Kubernetes' Go programs accepts fields in the wrong case. The API server does not.
#
# Versions:   sigs.k8s.io/yaml 1.6.0, k8s.io/apimachinery and k8s.io/api 0.36.1, sigs.k8s.io/json of the same release.
# Guess:      UnmarshalStrict fails for a field that the API does not have. `Replicas` and `replicas` are two fields, as
#             in the API.
# Behaviour:  sigs.k8s.io/yaml, and the decoder of apimachinery's util/yaml, use encoding/json, which ignores the case of
#             names: `Replicas: 5` is read as replicas, in strict mode too, and if both are given, the last one in
#             alphabetical order wins. sigs.k8s.io/json, the decoder of the API server, reports an unknown field and
#             reads nothing.
# Matters:    A linter, a unit test or a bundle tool in Go accepts the manifest and works with 5 replicas. The API
#             server drops the field with a warning, or rejects the object. Check manifests with sigs.k8s.io/json, or
#             with a dry run of the API server.
#
# Output, seen on 2026-12-01:
#   go version go1.26.8 linux/amd64
#   spec: {Replicas: 5}
#     sigs.k8s.io/yaml, strict: replicas 5, error <nil>
#     apimachinery's util/yaml: replicas 5, error <nil>
#     sigs.k8s.io/json, strict: replicas none, error unknown field "spec.Replicas"
#   spec: {replicas: 1, rePlicas: 5}
#     sigs.k8s.io/yaml, strict: replicas 1, error <nil>
#     apimachinery's util/yaml: replicas 1, error <nil>
#     sigs.k8s.io/json, strict: replicas 1, error unknown field "spec.rePlicas"
#   spec: {replica: 5}
#     sigs.k8s.io/yaml, strict: replicas none, error error unmarshaling JSON: while decoding JSON: json: unknown field "replica"
#     apimachinery's util/yaml: replicas none, error <nil>
#     sigs.k8s.io/json, strict: replicas none, error unknown field "spec.replica"
#   As described: strict decoding of YAML finds unknown names, but ignores their case.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >main.go <<'GO'
package main

import (
	"bytes"
	"fmt"
	"os"

	apps "k8s.io/api/apps/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// decoders read YAML as a Deployment.
var decoders = []struct {
	name   string
	decode func(text []byte, into *apps.Deployment) error
}{
	{"sigs.k8s.io/yaml, strict", func(text []byte, into *apps.Deployment) error { return yaml.UnmarshalStrict(text, into) }},
	{"apimachinery's util/yaml", func(text []byte, into *apps.Deployment) error {
		return utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(into)
	}},
	{"sigs.k8s.io/json, strict", func(text []byte, into *apps.Deployment) error {
		data, err := yaml.YAMLToJSON(text)
		if err != nil {
			return err
		}
		unknown, err := json.UnmarshalStrict(data, into)
		if err == nil && len(unknown) > 0 {
			err = unknown[0]
		}
		return err
	}},
}

// read returns what a decoder makes of the text.
func read(decode func([]byte, *apps.Deployment) error, text string) string {
	var deployment apps.Deployment
	err := decode([]byte(text), &deployment)
	replicas := "none"
	if deployment.Spec.Replicas != nil {
		replicas = fmt.Sprint(*deployment.Spec.Replicas)
	}
	return fmt.Sprintf("replicas %s, error %v", replicas, err)
}

func main() {
	changed := false
	for _, each := range []struct {
		text    string
		results [3]string
	}{
		{"spec: {Replicas: 5}", [3]string{
			"replicas 5, error <nil>",
			"replicas 5, error <nil>",
			`replicas none, error unknown field "spec.Replicas"`,
		}},
		{"spec: {replicas: 1, rePlicas: 5}", [3]string{
			"replicas 1, error <nil>",
			"replicas 1, error <nil>",
			`replicas 1, error unknown field "spec.rePlicas"`,
		}},
		{"spec: {replica: 5}", [3]string{
			`replicas none, error error unmarshaling JSON: while decoding JSON: json: unknown field "replica"`,
			"replicas none, error <nil>",
			`replicas none, error unknown field "spec.replica"`,
		}},
	} {
		fmt.Println(each.text)
		for number, decoder := range decoders {
			result := read(decoder.decode, each.text)
			fmt.Printf("  %s: %s\n", decoder.name, result)
			changed = changed || result != each.results[number]
		}
	}
	if changed {
		fmt.Println("CHANGED: a decoder reads other fields.")
		os.Exit(1)
	}
	fmt.Println("As described: strict decoding of YAML finds unknown names, but ignores their case.")
}
GO
export GOPATH="$folder/go" GOFLAGS=-modcacherw
go version
go mod init example.com/fields 2>/dev/null
timeout 120 go get k8s.io/api/apps/v1@v0.36.1 k8s.io/apimachinery/pkg/util/yaml@v0.36.1 \
  sigs.k8s.io/yaml@v1.6.0 sigs.k8s.io/json 2>go.log || { cat go.log; exit 1; }
timeout 240 go run .
