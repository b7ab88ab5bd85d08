package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// evalContext offers env(name) and file(path); paths are relative to dir.
func evalContext(dir string) *hcl.EvalContext {
	return &hcl.EvalContext{Functions: map[string]function.Function{
		"env": textFunction("name", func(name string) (string, error) {
			if !variableName.MatchString(name) {
				// Not repeated: a credential gets here by mistake.
				return "", errors.New("that is no name of an environment variable")
			}
			value, ok := os.LookupEnv(name)
			if !ok {
				return "", fmt.Errorf("environment variable %q is not set where noria was started", name)
			}
			return value, nil
		}),
		"file": textFunction("path", func(path string) (string, error) {
			raw, err := readBounded(expand(dir, path))
			if err != nil {
				return "", fmt.Errorf("%q cannot be read: %w; a relative path begins at the configuration file", path, cause(err))
			}
			if !utf8.Valid(raw) {
				return "", fmt.Errorf("%s is not UTF-8 text", path)
			}
			// Editors end a file with a line break that nobody means to be part of a value.
			return strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r"), nil
		}),
	}}
}

func textFunction(parameter string, f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: parameter, Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, err := f(args[0].AsString())
			if err != nil {
				return cty.UnknownVal(cty.String), function.NewArgError(0, err)
			}
			return cty.StringVal(text), nil
		},
	})
}
