// Package ruby stands in for a grammar.
package ruby

import sitter "github.com/smacker/go-tree-sitter"

func GetLanguage() *sitter.Language { return nil }
