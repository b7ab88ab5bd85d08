package events

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// vocabulary holds words by what they are: component, operation, state, route, outcome, reason.
type vocabulary map[string]map[string]bool

func (v vocabulary) add(kind, word string) {
	if v[kind] == nil {
		v[kind] = map[string]bool{}
	}
	v[kind][word] = true
}

// producer reads what the files of one folder say of events. A word is a literal, or a constant of this package, at a place
// that is named for its kind: a field, a variable, a parameter, a result or a constant.
type producer struct {
	said vocabulary
	// own are the words of this package by the names of their constants.
	own map[string]word
	// fields of types, and parameters and results of functions, in order.
	fields, parameters, results map[string][]string
	// makers are functions that are called for a word, by the kind of word.
	makers map[string]string
}

type word struct{ kind, text string }

func (v vocabulary) read(t *testing.T, dir string, own map[string]word) {
	t.Helper()
	p := &producer{v, own, map[string][]string{}, map[string][]string{}, map[string][]string{}, map[string]string{}}
	files := sources(t, dir)
	for _, file := range files {
		ast.Inspect(file, p.declaration)
	}
	for range 2 { // a maker may stand before its caller
		for _, file := range files {
			for _, d := range file.Decls {
				p.declared(d)
			}
		}
	}
}

func (p *producer) declared(d ast.Decl) {
	results := []string(nil)
	if f, ok := d.(*ast.FuncDecl); ok {
		results = p.results[f.Name.Name]
		if kind := p.makers[f.Name.Name]; kind != "" {
			results = []string{kind}
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		p.node(n, results)
		return true
	})
}

// sources are the files of a folder that are no tests.
func sources(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// declaration notes the names of places that values may be given to without a name.
func (p *producer) declaration(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.TypeSpec:
		if s, ok := n.Type.(*ast.StructType); ok {
			p.fields[n.Name.Name] = placeNames(s.Fields)
		}
	case *ast.FuncDecl:
		p.parameters[n.Name.Name], p.results[n.Name.Name] = placeNames(n.Type.Params), placeNames(n.Type.Results)
	}
	return true
}

func placeNames(list *ast.FieldList) (all []string) {
	if list == nil {
		return nil
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			all = append(all, name.Name)
		}
	}
	return all
}

// node adds what is said at one place; results are those of the function around it.
func (p *producer) node(n ast.Node, results []string) {
	switch n := n.(type) {
	case *ast.CallExpr:
		p.given(p.parameters[nameOf(n.Fun)], n.Args)
	case *ast.ReturnStmt:
		p.given(results, n.Results)
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if len(n.Rhs) == len(n.Lhs) {
				p.say(nameOf(to), n.Rhs[i])
			}
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if i < len(n.Values) {
				p.say(nameOf(n.Type), n.Values[i])
				p.say(name.Name, n.Values[i])
			}
		}
	case *ast.CompositeLit:
		p.composite(n)
	case *ast.SwitchStmt:
		p.sorted(n)
	}
}

func (p *producer) given(places []string, values []ast.Expr) {
	for i, value := range values {
		if i < len(places) {
			p.say(places[i], value)
		}
	}
}

// composite reads events, verdicts, rejections and refusals; what others call a state or reason is no matter of events.
func (p *producer) composite(n *ast.CompositeLit) {
	switch nameOf(n.Type) {
	case "Event", "Verdict", "Rejection", "refusal":
	default:
		return
	}
	for i, element := range n.Elts {
		if field, ok := element.(*ast.KeyValueExpr); ok {
			p.say(nameOf(field.Key), field.Value)
		} else if fields := p.fields[nameOf(n.Type)]; i < len(fields) {
			p.say(fields[i], element)
		}
	}
}

// sorted adds the cases of a switch over a name that becomes a reason itself.
func (p *producer) sorted(n *ast.SwitchStmt) {
	for _, statement := range n.Body.List {
		clause := statement.(*ast.CaseClause)
		ast.Inspect(clause, func(inner ast.Node) bool {
			call, ok := inner.(*ast.CallExpr)
			if !ok || nameOf(n.Tag) == "" {
				return true
			}
			for i, place := range p.parameters[nameOf(call.Fun)] {
				if i < len(call.Args) && nameOf(call.Args[i]) == nameOf(n.Tag) {
					for _, value := range clause.List {
						p.say(place, value)
					}
				}
			}
			return true
		})
	}
}

// say adds the words of a value, if the place is named for a kind of word.
func (p *producer) say(place string, value ast.Expr) {
	kind := kindOf(place)
	ast.Inspect(value, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if own, ok := p.own[n.Sel.Name]; ok && nameOf(n.X) == "events" {
				p.said.add(own.kind, own.text)
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && kind != "" && codePattern.MatchString(text) {
				p.said.add(kind, text)
			}
		case *ast.FuncLit, *ast.CompositeLit:
			return false
		case *ast.CallExpr:
			if kind != "" {
				p.makers[nameOf(n.Fun)] = kind
			}
			return kindOf(nameOf(n.Fun)) != "" || nameOf(n.Fun) == "string" // a conversion
		}
		return true
	})
}

// codePattern tells codes from sentences, which some call reasons as well.
var codePattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func kindOf(place string) string {
	switch name := strings.ToLower(place); {
	case name == "component", name == "operation", name == "outcome", name == "reason":
		return name
	case place == "State":
		return "state"
	case place == "How", name == "passive", strings.HasPrefix(place, "reason"):
		return "reason"
	}
	return ""
}

// nameOf is the last part of a name; empty for what is none.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
