// Package sitter has the names of tree-sitter's Go package that vale compiles against, and parses nothing. vale uses
// tree-sitter only for the comments of source code, and we lint pages. tree-sitter is written in C, so that building it
// would require a C compiler and take a minute longer.
package sitter

import (
	"context"
	"errors"
)

var errNoParser = errors.New("this vale is built without tree-sitter: it lints pages, not source code")

type Language struct{}

type Point struct{ Row, Column uint32 }

type Node struct{}

func (*Node) Content([]byte) string { return "" }
func (*Node) StartPoint() Point     { return Point{} }

type Tree struct{}

func (*Tree) RootNode() *Node { return nil }

type Parser struct{}

func NewParser() *Parser              { return &Parser{} }
func (*Parser) SetLanguage(*Language) {}
func (*Parser) ParseCtx(context.Context, *Tree, []byte) (*Tree, error) {
	return nil, errNoParser
}

type Query struct{}

func NewQuery([]byte, *Language) (*Query, error) { return nil, errNoParser }
func (*Query) CaptureNameForId(uint32) string    { return "" }

type QueryCapture struct {
	Index uint32
	Node  *Node
}

type QueryMatch struct{ Captures []QueryCapture }

type QueryCursor struct{}

func NewQueryCursor() *QueryCursor                                        { return &QueryCursor{} }
func (*QueryCursor) Exec(*Query, *Node)                                   {}
func (*QueryCursor) NextMatch() (*QueryMatch, bool)                       { return nil, false }
func (*QueryCursor) FilterPredicates(m *QueryMatch, _ []byte) *QueryMatch { return m }
