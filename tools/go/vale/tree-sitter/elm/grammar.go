// Package elm stands in for a grammar.
package elm

import sitter "github.com/smacker/go-tree-sitter"

func GetLanguage() *sitter.Language { return nil }
