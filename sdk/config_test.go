package sdk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/sdk"
	"github.com/noria-dev/noria/sdk/wire"
)

func TestABlockDecodesByItsTags(t *testing.T) {
	config, err := sdk.NewConfig(map[string]any{"endpoint": "http://127.0.0.1:1", "patience": "1m", "strict": false,
		"labels": map[string]string{"a": "b"}, "retries": nil})
	if err != nil {
		t.Fatal(err)
	}
	got := providerBlock{Untagged: "stays", Share: 7, Labels: map[string]string{"old": "value"}}
	if err := config.Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := providerBlock{Endpoint: "http://127.0.0.1:1", Patience: time.Minute, Retries: 3, Share: 0.5, Strict: false,
		Regions: []string{"eu"}, Labels: map[string]string{"a": "b"}, Untagged: "stays"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAWrongAttributeIsNamedAndItsValueIsNot(t *testing.T) {
	tests := []struct {
		name, block string
		want        []string
	}{
		{"absent and required", `{}`, []string{"attribute endpoint: is required"}},
		{"null counts as absent", `{"endpoint": null}`, []string{"attribute endpoint: is required"}},
		{"string", `{"endpoint": 4711}`, []string{"attribute endpoint: must be a string"}},
		{"duration as number", `{"endpoint": "", "patience": 4711}`, []string{`attribute patience: must be a duration such as "45s"`}},
		{"duration without unit", `{"endpoint": "", "patience": "4711"}`, []string{`attribute patience: must be a duration such as "45s"`}},
		{"fraction for a whole number", `{"endpoint": "", "retries": 47.11}`, []string{"attribute retries: must be a whole number"}},
		{"number", `{"endpoint": "", "share": "4711"}`, []string{"attribute share: must be a number"}},
		{"bool", `{"endpoint": "", "strict": "4711"}`, []string{"attribute strict: must be true or false"}},
		{"list", `{"endpoint": "", "regions": [4711]}`, []string{"attribute regions: must be a list of strings"}},
		{"map", `{"endpoint": "", "labels": ["4711"]}`, []string{"attribute labels: must be a map of strings"}},
		{"all of them at once", `{"retries": "4711", "share": "4711"}`, []string{"attribute endpoint: is required",
			"attribute retries: must be a whole number", "attribute share: must be a number"}},
		{"no object", `"4711"`, []string{"decode block: not a JSON object"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config, err := sdk.NewConfig(json.RawMessage(test.block))
			if err != nil {
				t.Fatal(err)
			}
			err = config.Decode(&providerBlock{})
			if err == nil || err.Error() != strings.Join(test.want, "\n") {
				t.Errorf("error %v", err)
			}
			if strings.Contains(fmt.Sprint(err), "4711") {
				t.Error("error holds the value")
			}
			var wrong *sdk.AttributeError
			if strings.HasPrefix(test.want[0], "attribute") && !errors.As(err, &wrong) {
				t.Error("error is no AttributeError")
			}
		})
	}
}

func TestABlockDecodesIntoAPointerToAStructOnly(t *testing.T) {
	config, err := sdk.NewConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	number := 1
	for _, into := range []any{nil, providerBlock{}, (*providerBlock)(nil), &number} {
		if err := config.Decode(into); err == nil {
			t.Errorf("decoded into %T", into)
		}
	}
}

func TestAnAccountDecodesItsProvidersBlock(t *testing.T) {
	account, err := sdk.NewAccount("a", map[string]any{"token_file": "/x"}, sdk.Credential{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := sdk.NewConfig(map[string]any{"endpoint": "http://127.0.0.1:1"}, account)
	if err != nil {
		t.Fatal(err)
	}
	var own accountBlock
	var provider providerBlock
	if err := errors.Join(config.Accounts[0].Decode(&own), config.Accounts[0].DecodeProvider(&provider)); err != nil {
		t.Fatal(err)
	}
	if own.TokenFile != "/x" || provider.Endpoint != "http://127.0.0.1:1" {
		t.Errorf("decoded %q and %q", own.TokenFile, provider.Endpoint)
	}
}

func TestWhatHoldsACredentialPrintsAsRedacted(t *testing.T) {
	const canary = "canary-4711"
	account, err := sdk.NewAccount("work", map[string]any{"token": canary}, sdk.Credential{Value: canary})
	if err != nil {
		t.Fatal(err)
	}
	config, err := sdk.NewConfig(map[string]any{"token": canary}, account)
	if err != nil {
		t.Fatal(err)
	}
	lease := sdk.Lease{BaseURL: "https://" + canary, Set: map[string]string{"Authorization": canary}, Generation: canary}
	credential := sdk.Credential{Value: canary, File: canary, Command: []string{canary}}
	type wrapper struct{ Inner any }
	header := wire.Header{Name: "authorization", Value: canary}
	leased := wire.Lease{BaseURL: "https://" + canary, Set: []wire.Header{header}, Extend: []wire.Header{header}, Generation: canary}
	for _, value := range []any{lease, &lease, credential, &credential, sdk.Secret(canary), account, &account, config, &config,
		leased, &leased, header, &header} {
		for _, printed := range []any{value, wrapper{value}, []any{value}, map[string]any{"k": value}} {
			var out strings.Builder
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
				fmt.Fprintf(&out, verb, printed)
			}
			asJSON, err := json.Marshal(printed)
			if err != nil {
				t.Errorf("%T: %v", printed, err)
			}
			out.Write(asJSON)
			slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", printed)
			slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", printed)
			if strings.Contains(out.String(), canary) || strings.Contains(out.String(), fmt.Sprintf("%x", canary)) {
				t.Errorf("%T prints its credential: %s", value, out.String())
			}
		}
	}
	if got := fmt.Sprint(account, lease, credential); got != "account work [redacted] [redacted]" {
		t.Errorf("printed %q", got)
	}
}
