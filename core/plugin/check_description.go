package plugin

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/noria-dev/noria/core/internal/printable"
	"github.com/noria-dev/noria/core/quota"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// Bounds of descriptions and profiles.
const (
	maxDoc         = 1 << 10
	maxRoutes      = 64
	maxNames       = 128
	maxPatternText = 1 << 10
	errorBodyCap   = 64 << 10
)

// checkDescription refuses what cannot be shown or worked with, and an adapter for another provider than the one it is
// configured for.
func checkDescription(d *pluginv1.DescribeResponse, spec Spec) *Failure {
	bad := func(detail string) *Failure {
		return &Failure{Reason: ReasonDescribe, Detail: detail, Permanent: true}
	}
	switch {
	case !wire.IsName(d.GetName()):
		return bad("adapter has no valid name")
	case !wire.IsName(d.GetProvider()):
		return bad("adapter names no valid provider")
	case !printable.IsLine(d.GetVersion(), maxIDBytes), !printable.IsLine(d.GetSdkVersion(), maxIDBytes):
		return bad("version of the adapter is not printable")
	case !namesOnly(d.GetServices(), maxServices), !namesOnly(d.GetEnvironment(), maxServices):
		return bad("services or environment of the adapter are not names")
	case !schemaOK(d.GetConfigSchema()), !schemaOK(d.GetAccountSchema()):
		return bad("configuration schema of the adapter is not valid")
	case spec.Provider != "" && d.GetProvider() != spec.Provider:
		return &Failure{Reason: ReasonIdentity, Detail: "adapter serves another provider than the one it is configured for", Permanent: true}
	case slices.Contains(d.GetServices(), wire.ServiceSigner):
		return unsigned()
	case d.GetHandshakeVersion() != 0 && d.GetHandshakeVersion() != uint32(wire.Handshake.ProtocolVersion):
		return &Failure{Reason: ReasonHandshakeVersion, Detail: "adapter was built for another protocol version", Permanent: true}
	}
	return nil
}

// unsigned refuses an adapter whose provider wants every request signed: the host would send them unsigned.
func unsigned() *Failure {
	return &Failure{Reason: ReasonSigner, Detail: "adapter signs requests, which this version of Noria does not do", Permanent: true}
}

func schemaOK(s *pluginv1.Schema) bool {
	if len(s.GetAttributes()) > wire.MaxAttributes {
		return false
	}
	for _, a := range s.GetAttributes() {
		if !wire.IsAttribute(a.GetName()) || !printable.IsLine(a.GetDoc(), maxDoc) || !printable.IsLine(a.GetDefaultJson(), maxDoc) {
			return false
		}
		if _, known := pluginv1.AttributeType_name[int32(a.GetType())]; !known || a.GetType() == pluginv1.AttributeType_ATTRIBUTE_TYPE_UNSPECIFIED {
			return false
		}
	}
	return true
}

func namesOnly(names []string, most int) bool {
	return len(names) <= most && !slices.ContainsFunc(names, func(n string) bool { return n == "" || !printable.IsLine(n, maxPatternText) })
}

// profile bounds a profile and leaves out what is about accounts that are not configured. What its rules mean is judged
// by those who work with them.
func (c *answerCheck) profile(p *providerv1.Profile, config *pluginv1.Config) (*providerv1.Profile, *Failure) {
	bad := func(detail string) *Failure {
		return &Failure{Reason: ReasonProfile, Detail: detail, Permanent: true}
	}
	if p == nil {
		return nil, bad("adapter has no profile")
	}
	if len(p.GetRoutes()) == 0 || len(p.GetRoutes()) > maxRoutes {
		return nil, bad("profile has no routes, or too many")
	}
	for _, r := range p.GetRoutes() {
		if f := c.route(r); f != nil {
			return nil, f
		}
	}
	if !exposureOK(p.GetExposure()) || !streamOK(p.GetStream()) || !headersOK(p.GetHeaders()) {
		return nil, bad("profile holds names that are none, or too many")
	}
	for _, a := range []*providerv1.Answer{p.GetFallbacks().GetWrongKey(), p.GetFallbacks().GetUnknownPath(),
		p.GetFallbacks().GetUnavailableUntil(), p.GetFallbacks().GetUnavailable(), p.GetFallbacks().GetAdapterAway()} {
		if a == nil {
			continue
		}
		if _, err := c.answer(a); err != nil {
			return nil, bad("fallback answer of the profile is not valid")
		}
	}
	checked := proto.CloneOf(p)
	if e := checked.GetExposure(); e != nil {
		e.ErrorBodyBytes = min(max(e.GetErrorBodyBytes(), 0), errorBodyCap)
	}
	checked.UsageLagMs = min(max(checked.GetUsageLagMs(), 0), maxRetryAfter.Milliseconds())
	checked.Accounts = c.accountProfiles(p.GetAccounts(), config)
	return checked, nil
}

func (c *answerCheck) route(r *providerv1.Route) *Failure {
	bad := &Failure{Reason: ReasonProfile, Detail: "route of the profile is not valid", Permanent: true}
	if !printable.IsLine(r.GetMethod(), maxIDBytes) || r.GetPath() == "" || r.GetPath()[0] != '/' || !printable.IsLine(r.GetPath(), maxPatternText) {
		return bad
	}
	if _, known := providerv1.RouteKind_name[int32(r.GetKind())]; !known || r.GetKind() == providerv1.RouteKind_ROUTE_KIND_UNSPECIFIED {
		return bad
	}
	if r.GetKind() == providerv1.RouteKind_ROUTE_KIND_LOCAL {
		if _, err := c.answer(r.GetLocal()); err != nil {
			return bad
		}
	}
	return nil
}

func exposureOK(e *providerv1.Exposure) bool {
	return namesOnly(e.GetRequestHeaders(), maxNames) && namesOnly(e.GetRequestFields(), maxNames) &&
		namesOnly(e.GetResponseHeaders(), maxNames) && namesOnly(e.GetUrgentHeaders(), maxNames)
}

func streamOK(s *providerv1.StreamGrammar) bool {
	_, known := providerv1.Framing_name[int32(s.GetFraming())]
	return known && printable.IsLine(s.GetTypePointer(), maxPatternText) &&
		namesOnly(s.GetPreamble(), maxNames) && namesOnly(s.GetInspected(), maxNames) && namesOnly(s.GetTelemetry(), maxNames) &&
		namesOnly(s.GetTerminal(), maxNames) && namesOnly(s.GetAccepted(), maxNames)
}

func headersOK(h *providerv1.HeaderPolicy) bool {
	return namesOnly(h.GetCredentials(), maxNames) && namesOnly(h.GetAccountBound(), maxNames) && namesOnly(h.GetDropResponse(), maxNames)
}

func (c *answerCheck) accountProfiles(given []*providerv1.AccountProfile, config *pluginv1.Config) []*providerv1.AccountProfile {
	var out []*providerv1.AccountProfile
	for _, account := range config.GetAccounts() {
		i := slices.IndexFunc(given, func(p *providerv1.AccountProfile) bool { return p.GetAccount() == account.GetName() })
		if i < 0 {
			continue
		}
		out = append(out, c.accountProfile(given[i]))
	}
	return out
}

func (c *answerCheck) accountProfile(given *providerv1.AccountProfile) *providerv1.AccountProfile {
	out := &providerv1.AccountProfile{Account: given.GetAccount(), Unmetered: given.GetUnmetered()}
	seen := map[string]bool{}
	for _, w := range given.GetWindows()[:min(len(given.GetWindows()), quota.MaxWindows)] {
		d, sound, ok := c.declaration(w.GetWindowId(), w.GetKind(), w.GetLengthSeconds(), w.GetModels(), w.GetLabel())
		if !ok || !sound || seen[d.ID] {
			continue
		}
		seen[d.ID] = true
		out.Windows = append(out.Windows, &providerv1.WindowDeclaration{WindowId: d.ID, Kind: w.GetKind(),
			LengthSeconds: int64(d.Length.Seconds()), Models: d.Models, Label: d.Label})
	}
	return out
}

// Declarations are the windows that an account has by a profile that OnProfile was given, in package quota's words.
func Declarations(account *providerv1.AccountProfile) []quota.Declaration {
	var windows []quota.Declaration
	for _, w := range account.GetWindows() {
		windows = append(windows, quota.Declaration{
			ID: w.GetWindowId(), Kind: windowKinds[w.GetKind()], Models: w.GetModels(), Label: w.GetLabel(),
			Length: time.Duration(w.GetLengthSeconds()) * time.Second,
		})
	}
	return windows
}
