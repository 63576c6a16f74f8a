// Package typescript stands in for a grammar.
package typescript

import sitter "github.com/smacker/go-tree-sitter"

func GetLanguage() *sitter.Language { return nil }
