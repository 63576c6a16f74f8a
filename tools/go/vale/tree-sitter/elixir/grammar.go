// Package elixir stands in for a grammar.
package elixir

import sitter "github.com/smacker/go-tree-sitter"

func GetLanguage() *sitter.Language { return nil }
