package plugintest

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

func (s *suite) checkLeases(ctx context.Context, f *findings) {
	for _, account := range s.fixtures.Accounts {
		first := s.lease(ctx, account.Name, &providerv1.LeaseRequest{Account: account.Name}, f)
		if first == nil {
			continue
		}
		if account.Refusal != "" {
			checkRefusal(account, first, f)
			continue
		}
		lease := first.GetLease()
		if lease == nil {
			f.add("give a lease, or set the account's refusal in the fixtures", "account %s: refused as %s: %s",
				account.Name, word("REFUSAL_CODE_", first.GetRefusal().GetCode()), first.GetRefusal().GetReason())
			continue
		}
		s.learnSecrets(lease)
		s.checkLease(account.Name, lease, f)
		second := s.lease(ctx, account.Name, &providerv1.LeaseRequest{Account: account.Name}, f).GetLease()
		if second != nil && second.GetGeneration() != lease.GetGeneration() {
			f.add("change the generation only when the login behind the lease changes", "account %s: two leases of one login have two generations", account.Name)
		}
		refreshed := s.lease(ctx, account.Name, &providerv1.LeaseRequest{Account: account.Name, Refresh: true, RefusedGeneration: lease.GetGeneration()}, f)
		if refreshed.GetLease() != nil {
			s.learnSecrets(refreshed.GetLease())
		}
	}
}

// lease asks within the deadline of the protocol.
func (s *suite) lease(ctx context.Context, account string, req *providerv1.LeaseRequest, f *findings) *providerv1.LeaseResponse {
	ctx, cancel := context.WithTimeout(ctx, leaseTime)
	defer cancel()
	resp, err := s.provider.Lease(ctx, req)
	if err != nil {
		f.add("answer within five seconds with a lease or a typed refusal", "account %s: Lease (refresh %v): %v", account, req.GetRefresh(), err)
		return nil
	}
	if resp.GetLease() == nil && resp.GetRefusal().GetCode() == providerv1.RefusalCode_REFUSAL_CODE_UNSPECIFIED {
		f.add("set one of lease and refusal, and the refusal's code", "account %s: Lease answered with neither a lease nor a typed refusal", account)
	}
	return resp
}

func checkRefusal(account Account, resp *providerv1.LeaseResponse, f *findings) {
	want, known := enum(providerv1.RefusalCode_value, "REFUSAL_CODE_", account.Refusal)
	if !known {
		f.add("use a word of the protocol, such as signed_out", "fixtures want the refusal %q", account.Refusal)
	}
	switch got := resp.GetRefusal(); {
	case got == nil:
		f.add("refuse it, or leave the refusal out of the fixtures", "account %s: got a lease", account.Name)
	case got.GetCode() != providerv1.RefusalCode(want):
		f.add("refuse with that code, or correct the fixtures", "account %s: refused as %s instead of %s", account.Name, word("REFUSAL_CODE_", got.GetCode()), account.Refusal)
	case got.GetReason() == "":
		f.add("say in one sentence what the user has to do", "account %s: refusal has no reason", account.Name)
	}
}

func (s *suite) learnSecrets(lease *providerv1.Lease) {
	for _, h := range lease.GetSet() {
		if s.isCredential(h.GetName()) {
			s.addSecret(h.GetValue())
		}
	}
}

func (s *suite) isCredential(header string) bool {
	named := func(name string) bool { return strings.EqualFold(name, header) }
	return slices.ContainsFunc(credentialHeaders(), named) || slices.ContainsFunc(s.profile.GetHeaders().GetCredentials(), named)
}

func (s *suite) checkLease(account string, lease *providerv1.Lease, f *findings) {
	if _, err := wire.ParseUpstream(lease.GetBaseUrl()); err != nil {
		f.add("check what is configured with ParseUpstream", "account %s: base URL %q takes no credential: it %v", account, lease.GetBaseUrl(), err)
	}
	if until := lease.GetValidUntil(); until != nil && time.Until(until.AsTime()) <= 0 {
		f.add("refresh by the official way, or refuse as expired", "account %s: lease has expired already", account)
	}
	if lease.GetGeneration() == "" {
		f.add("give the login a name that changes with it and says nothing of the credential", "account %s: lease has no generation", account)
	}
	credentials := 0
	for _, h := range lease.GetSet() {
		if !httpguts.ValidHeaderFieldName(h.GetName()) || !httpguts.ValidHeaderFieldValue(h.GetValue()) {
			f.add("trim what was read from a file or a command", "account %s: header %q of the lease is no valid header", account, h.GetName())
		}
		if s.isCredential(h.GetName()) {
			credentials++
		}
	}
	if credentials == 0 {
		f.add("name the header of the credential in the profile's headers.credentials, so that the client's own never goes up",
			"account %s: none of the headers that the lease sets is a credential by the profile", account)
	}
	for _, secret := range s.secrets {
		if strings.Contains(lease.GetGeneration(), secret) || strings.Contains(lease.GetBaseUrl(), secret) {
			f.add("use a counter, a time of modification or a keyed hash", "account %s: base URL or generation holds the credential", account)
		}
	}
}
