// Package javascript stands in for a grammar.
package javascript

import sitter "github.com/smacker/go-tree-sitter"

func GetLanguage() *sitter.Language { return nil }
