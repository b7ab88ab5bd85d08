package sdk

import providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"

func profileProto(p Profile) *providerv1.Profile {
	profile := &providerv1.Profile{
		Identity: &providerv1.Identity{
			Session:    extractorsProto(p.Identity.Session),
			Parent:     extractorsProto(p.Identity.Parent),
			Subagent:   extractorsProto(p.Identity.Subagent),
			Work:       extractorsProto(p.Identity.Work),
			PlacedWork: p.Identity.PlacedWork,
			Model:      extractorsProto(p.Identity.Model),
			Streaming:  extractorsProto(p.Identity.Streaming),
		},
		Exposure: &providerv1.Exposure{
			RequestHeaders:  p.Exposure.RequestHeaders,
			RequestFields:   p.Exposure.RequestFields,
			ResponseHeaders: p.Exposure.ResponseHeaders,
			ErrorBodyBytes:  int32(p.Exposure.ErrorBodyBytes),
			UrgentHeaders:   p.Exposure.UrgentHeaders,
		},
		Stream: &providerv1.StreamGrammar{
			Framing:     p.Stream.Framing,
			TypePointer: p.Stream.TypePointer,
			Preamble:    p.Stream.Preamble,
			Inspected:   p.Stream.Inspected,
			Telemetry:   p.Stream.Telemetry,
			Terminal:    p.Stream.Terminal,
			Accepted:    p.Stream.Accepted,
		},
		Headers: &providerv1.HeaderPolicy{
			Credentials:  p.Headers.Credentials,
			AccountBound: p.Headers.AccountBound,
			DropResponse: p.Headers.DropResponse,
		},
		Fallbacks: &providerv1.FallbackAnswers{
			WrongKey:         answerProto(p.Fallbacks.WrongKey),
			UnknownPath:      answerProto(p.Fallbacks.UnknownPath),
			UnavailableUntil: answerProto(p.Fallbacks.UnavailableUntil),
			Unavailable:      answerProto(p.Fallbacks.Unavailable),
			AdapterAway:      answerProto(p.Fallbacks.AdapterAway),
		},
		UsageLagMs: p.UsageLag.Milliseconds(),
	}
	for _, r := range p.Routes {
		route := &providerv1.Route{Method: r.Method, Path: r.Path, Kind: r.Kind, RefuseUpgrade: r.RefuseUpgrade, Retryable: r.Retryable}
		if r.Local != nil {
			route.Local = answerProto(*r.Local)
		}
		profile.Routes = append(profile.Routes, route)
	}
	return profile
}

func extractorsProto(extractors []Extractor) []*providerv1.Extractor {
	var out []*providerv1.Extractor
	for _, e := range extractors {
		x := &providerv1.Extractor{InnerPointer: e.Inner, Pattern: e.Pattern}
		if e.Header != "" {
			x.Source = &providerv1.Extractor_Header{Header: e.Header}
		} else {
			x.Source = &providerv1.Extractor_BodyPointer{BodyPointer: e.BodyPointer}
		}
		out = append(out, x)
	}
	return out
}
