// Package lua stands in for a grammar.
package lua

import sitter "github.com/smacker/go-tree-sitter"

func GetLanguage() *sitter.Language { return nil }
