package events

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// A word that no list has is shown as unlisted; one that nobody says has no place in a list.
func TestWordsAreThoseOfTheirProducers(t *testing.T) {
	own, listed := ownWords(t)
	said := vocabulary{}
	for _, dir := range []string{
		"../agent", "../placement", "../plugin", "../proxy", "../../sdk",
		"../../plugins/claude", "../../plugins/codex", "../../plugins/simulated", "../../examples/provider-acme",
	} {
		said.read(t, dir, own)
	}
	said.enumeration("outcome", providerv1.Outcome_name)
	said.enumeration("route", providerv1.RouteKind_name)
	for kind, known := range map[string]func(string) bool{
		"component": func(s string) bool { return components(Component(s)) },
		"operation": func(s string) bool { return operations(Operation(s)) },
		"state":     func(s string) bool { return states(State(s)) },
		"route":     func(s string) bool { return routes(Route(s)) },
		"outcome":   func(s string) bool { return outcomes(Outcome(s)) },
		"reason":    func(s string) bool { return reasons(Reason(s)) },
	} {
		if len(said[kind]) < 3 {
			t.Errorf("found only %d words that say a %s", len(said[kind]), kind)
		}
		for _, text := range slices.Sorted(maps.Keys(said[kind])) {
			if !known(text) {
				t.Errorf("%s %q is said and not listed", kind, text)
			}
		}
		for _, text := range slices.Sorted(maps.Keys(listed[kind])) {
			if !said[kind][text] {
				t.Errorf("%s %q is listed and never said", kind, text)
			}
		}
	}
}

// enumeration adds the protocol's words; the first is none.
func (v vocabulary) enumeration(kind string, protocol map[int32]string) {
	prefix, _ := strings.CutSuffix(protocol[0], "UNSPECIFIED")
	for number, name := range protocol {
		if number != 0 {
			v.add(kind, strings.ToLower(strings.TrimPrefix(name, prefix)))
		}
	}
}

// ownWords are the constants of this package, and the words of its lists.
func ownWords(t *testing.T) (constants map[string]word, listed vocabulary) {
	t.Helper()
	constants, listed = map[string]word{}, vocabulary{}
	for _, file := range sources(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if text, ok := literal(spec.Values[0]); ok && spec.Type != nil {
				constants[spec.Names[0].Name] = word{strings.ToLower(nameOf(spec.Type)), text}
			}
			return true
		})
	}
	for _, file := range sources(t, ".") {
		for _, d := range file.Decls {
			if list, ok := d.(*ast.FuncDecl); ok {
				ast.Inspect(list, func(n ast.Node) bool {
					clause, ok := n.(*ast.CaseClause)
					if !ok {
						return true
					}
					for _, e := range clause.List {
						if own, ok := constants[nameOf(e)]; ok {
							listed.add(own.kind, own.text)
						} else if text, ok := literal(e); ok {
							listed.add(strings.TrimSuffix(list.Name.Name, "s"), text)
						}
					}
					return true
				})
			}
		}
	}
	return constants, listed
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}
