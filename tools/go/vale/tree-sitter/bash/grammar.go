// Package bash stands in for a grammar.
package bash

import sitter "github.com/smacker/go-tree-sitter"

func GetLanguage() *sitter.Language { return nil }
