// Crd-costs prints, as JSON, what the API server of this module's Kubernetes estimates for the CEL rules of
// CustomResourceDefinitions, together with its limits.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// Expression is a rule or a messageExpression. Cost counts every value it may run for, as the API server's check does.
type Expression struct {
	Path string `json:"path"`
	Text string `json:"text"`
	Cost uint64 `json:"cost"`
}

// Schema is one version of one CustomResourceDefinition.
type Schema struct {
	Definition  string       `json:"definition"`
	Version     string       `json:"version"`
	Total       uint64       `json:"total"`
	Expressions []Expression `json:"expressions"`
}

// Report is what the program prints.
type Report struct {
	ExpressionLimit uint64   `json:"expressionLimit"`
	TotalLimit      uint64   `json:"totalLimit"`
	Schemas         []Schema `json:"schemas"`
}

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, files []string) error {
	if len(files) == 0 {
		return errors.New("usage: crd-costs CRD_FILE …")
	}
	report := Report{validation.StaticEstimatedCostLimit, validation.StaticEstimatedCRDCostLimit, []Schema{}}
	for _, file := range files {
		found, err := schemas(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		report.Schemas = append(report.Schemas, found...)
	}
	return json.NewEncoder(out).Encode(report)
}

func schemas(file string) ([]Schema, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var definition v1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &definition); err != nil {
		return nil, err
	}
	found := []Schema{}
	for _, version := range definition.Spec.Versions {
		var root apiextensions.JSONSchemaProps
		if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &root, nil); err != nil {
			return nil, err
		}
		schema := Schema{Definition: definition.Name, Version: version.Name, Expressions: []Expression{}}
		context := validation.RootCELContext(&root)
		if err := schema.visit(&root, context, ""); err != nil {
			return nil, err
		}
		found = append(found, schema)
	}
	return found, nil
}

// visit estimates the rules of a node and of those below it. The way down is that of
// validation.ValidateCustomResourceDefinitionOpenAPISchema, which keeps the figures to itself.
func (schema *Schema) visit(node *apiextensions.JSONSchemaProps, context *validation.CELSchemaContext, path string) error {
	if err := schema.estimate(node, context, path); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for name, property := range node.Properties {
		if err := schema.visit(&property, context.ChildPropertyContext(&property, name), path+"."+name); err != nil {
			return err
		}
	}
	if node.Items != nil {
		items := node.Items.Schema
		return schema.visit(items, context.ChildItemsContext(items), path+"[*]")
	}
	if node.AdditionalProperties != nil {
		values := node.AdditionalProperties.Schema
		return schema.visit(values, context.ChildAdditionalPropertiesContext(values), path+"[*]")
	}
	return nil
}

func (schema *Schema) estimate(node *apiextensions.JSONSchemaProps, context *validation.CELSchemaContext, path string) error {
	if len(node.XValidations) == 0 {
		return nil
	}
	info, err := context.TypeInfo()
	if err != nil {
		return err
	}
	environments := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	results, err := cel.Compile(
		info.Schema, info.DeclType, celconfig.PerCallLimit, environments, cel.NewExpressionsEnvLoader())
	if err != nil {
		return err
	}
	for i, result := range results {
		rule := node.XValidations[i]
		if result.Error != nil {
			return fmt.Errorf("%s: %w", rule.Rule, result.Error)
		}
		if result.MessageExpressionError != nil {
			return fmt.Errorf("%s: %w", rule.MessageExpression, result.MessageExpressionError)
		}
		cardinality := result.MaxCardinality
		if context.MaxCardinality != nil {
			cardinality = *context.MaxCardinality
		}
		schema.add(path, rule.Rule, result.MaxCost*cardinality)
		if rule.MessageExpression != "" {
			schema.add(path, rule.MessageExpression, result.MessageExpressionMaxCost)
		}
	}
	return nil
}

func (schema *Schema) add(path, text string, cost uint64) {
	schema.Expressions = append(schema.Expressions, Expression{path, text, cost})
	schema.Total += cost
}
