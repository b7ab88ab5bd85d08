// Noria-provider-acme is a complete adapter for Acme, a provider with one weekly window that exists in ./upstream only.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/noria-dev/noria/sdk"
)

const week = 7 * 24 * time.Hour

type providerBlock struct {
	Endpoint string `hcl:"endpoint" default:"http://127.0.0.1:9000" doc:"Base URL of Acme."`
}

type accountBlock struct {
	TokenFile sdk.Path `hcl:"token_file,required" doc:"File that holds the account's token."`
}

type acme struct{ credentials *sdk.Credentials }

func main() { sdk.Serve(newAcme) }

func newAcme() sdk.Adapter { return acme{credentials: sdk.NewCredentials()} }

func (acme) Describe() sdk.Descriptor {
	return sdk.Descriptor{Name: "acme", Version: "0.1.0", Config: providerBlock{}, Account: accountBlock{}, Profile: sdk.Profile{
		Routes:    []sdk.Route{{Method: "POST", Path: "/v1/chat", Kind: sdk.RouteTurn, Retryable: true}},
		Identity:  sdk.Identity{Session: []sdk.Extractor{{Header: "acme-session"}}, Model: []sdk.Extractor{{BodyPointer: "/model"}}},
		Exposure:  sdk.Exposure{ResponseHeaders: []string{"acme-used-percent", "acme-reset", "retry-after"}, ErrorBodyBytes: 4096},
		Stream:    sdk.StreamGrammar{Framing: sdk.FramingNone},
		Headers:   sdk.HeaderPolicy{Credentials: []string{"authorization"}},
		Fallbacks: sdk.JSONFallbacks(`{"error":"{{sentence}}"}`),
		Windows:   []sdk.WindowDeclaration{sdk.WindowOf(week).Declaration()},
	}}
}

func (a acme) Lease(ctx context.Context, account sdk.Account, _ sdk.LeaseRequest) (sdk.Lease, error) {
	provider, own := providerBlock{}, accountBlock{}
	if err := errors.Join(account.DecodeProvider(&provider), account.Decode(&own)); err != nil {
		return sdk.Lease{}, err
	}
	token, generation, err := a.credentials.Read(ctx, sdk.Credential{File: string(own.TokenFile)})
	if err != nil {
		return sdk.Lease{}, sdk.Refuse(sdk.CredentialRefusal(err), "Put the account's token into its token_file.")
	}
	return sdk.Lease{BaseURL: provider.Endpoint, Generation: generation,
		Set: map[string]string{"authorization": "Bearer " + string(token)}}, nil
}

func (acme) Classify(_ context.Context, _ sdk.Account, r sdk.Response) (sdk.Verdict, error) {
	var body struct{ Error string }
	_ = json.Unmarshal(r.Body, &body) // what is no JSON has no error code
	if r.Status != http.StatusTooManyRequests || body.Error != "quota" {
		return sdk.VerdictByStatus(r), nil
	}
	window := weekly(r.Header, r.ObservedAt)
	window.State = sdk.StateExhausted
	return sdk.Verdict{Outcome: sdk.OutcomeQuotaExhausted, Scope: sdk.ScopeAccount, Reason: "quota",
		WindowID: window.ID, ClearsAt: window.ResetsAt, Windows: []sdk.Window{window}}, nil
}

func (acme) Observe(_ context.Context, _ sdk.Account, o sdk.Observation) ([]sdk.Window, error) {
	return []sdk.Window{weekly(o.Header, o.ObservedAt)}, nil
}

func weekly(header http.Header, at time.Time) sdk.Window {
	window := sdk.WindowOf(week)
	window.UsedPercent = sdk.ParsePercent(sdk.OneValue(header, "acme-used-percent"))
	reset, _ := sdk.ParseUnixSeconds(sdk.OneValue(header, "acme-reset"))
	window.ResetsAt = sdk.ResetWithin(reset, at, week)
	return window
}
