package sdk

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

// validate finds what is wrong with a configuration: by the schema first, and when that holds, by the adapter's own
// Validator.
func (s *adapterServer) validate(ctx context.Context, config Config) []Diagnostic {
	found := checkBlock(config.provider, s.descriptor.Config, s.configSchema, "")
	seen := map[string]bool{}
	for _, account := range config.Accounts {
		if account.Name == "" || seen[account.Name] {
			found = append(found, Diagnostic{Severity: SeverityError, Account: account.Name,
				Summary: "Account name is empty or used twice", Detail: "Give every account of a provider its own name."})
		}
		seen[account.Name] = true
		found = append(found, checkBlock(account.config, s.descriptor.Account, s.accountSchema, account.Name)...)
	}
	if validator, ok := s.adapter.(Validator); ok && !hasError(found) {
		// A disabled account comes without its credential: what it lacks hinders nobody.
		config.Accounts = slices.DeleteFunc(slices.Clone(config.Accounts), func(a Account) bool { return !a.Enabled })
		found = append(found, validator.Validate(ctx, config)...)
	}
	return found
}

// checkBlock decodes one block into a fresh struct of the kind that the descriptor names.
func checkBlock(raw []byte, block any, schema []attribute, account string) []Diagnostic {
	values, err := blockValues(raw)
	if err != nil {
		return []Diagnostic{{Severity: SeverityError, Account: account, Summary: "Block cannot be read",
			Detail: "The daemon sent something other than a JSON object."}}
	}
	var found []Diagnostic
	for _, name := range unknownNames(values, schema) {
		found = append(found, Diagnostic{Severity: SeverityError, Account: account, Attribute: name,
			Summary: fmt.Sprintf("Unknown attribute %q", name), Detail: "Remove it, or see the adapter's schema for its name."})
	}
	if block == nil {
		return found
	}
	t := reflect.TypeOf(block)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for _, err := range joined(decodeBlock(raw, reflect.New(t).Interface())) {
		d := Diagnostic{Severity: SeverityError, Account: account, Summary: "Invalid block", Detail: err.Error()}
		var wrong *AttributeError
		if errors.As(err, &wrong) {
			d.Attribute = wrong.Attribute
			d.Summary = fmt.Sprintf("Invalid attribute %q", wrong.Attribute)
			d.Detail = fmt.Sprintf("The attribute %s.", wrong.Problem)
		}
		found = append(found, d)
	}
	return found
}

func unknownNames[V any](values map[string]V, schema []attribute) []string {
	known := map[string]bool{}
	for _, a := range schema {
		known[a.name] = true
	}
	var unknown []string
	for name := range values {
		if !known[name] {
			unknown = append(unknown, name)
		}
	}
	sort.Strings(unknown)
	return unknown
}

// joined takes an error made by errors.Join apart.
func joined(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}

func hasError(found []Diagnostic) bool {
	for _, d := range found {
		if d.Severity != SeverityWarning {
			return true
		}
	}
	return false
}

func diagnosticsProto(found []Diagnostic) []*pluginv1.Diagnostic {
	var diagnostics []*pluginv1.Diagnostic
	for _, d := range found {
		severity := pluginv1.Severity_SEVERITY_ERROR
		if d.Severity == SeverityWarning {
			severity = pluginv1.Severity_SEVERITY_WARNING
		}
		diagnostics = append(diagnostics, &pluginv1.Diagnostic{Severity: severity, Summary: oneLine(d.Summary),
			Detail: oneLine(d.Detail), Account: d.Account, Attribute: d.Attribute})
	}
	return diagnostics
}
