// Package yaml stands in for a grammar.
package yaml

import sitter "github.com/smacker/go-tree-sitter"

func GetLanguage() *sitter.Language { return nil }
