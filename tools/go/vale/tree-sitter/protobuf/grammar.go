// Package protobuf stands in for a grammar.
package protobuf

import sitter "github.com/smacker/go-tree-sitter"

func GetLanguage() *sitter.Language { return nil }
