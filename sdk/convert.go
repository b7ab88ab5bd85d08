package sdk

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// timeProto leaves an unknown time out.
func timeProto(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// timeFromProto gives the zero time for one that is absent or out of range.
func timeFromProto(t *timestamppb.Timestamp) time.Time {
	if !t.IsValid() {
		return time.Time{}
	}
	return t.AsTime()
}

func headerFromProto(headers []*providerv1.Header) http.Header {
	header := make(http.Header, len(headers))
	for _, h := range headers {
		header.Add(h.GetName(), h.GetValue())
	}
	return header
}

func headerProto(header http.Header) []*providerv1.Header {
	var headers []*providerv1.Header
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			headers = append(headers, &providerv1.Header{Name: name, Value: value})
		}
	}
	return headers
}

func pairsProto(pairs map[string]string) []*providerv1.Header {
	var headers []*providerv1.Header
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		headers = append(headers, &providerv1.Header{Name: name, Value: pairs[name]})
	}
	return headers
}

func leaseProto(l Lease) *providerv1.Lease {
	return &providerv1.Lease{
		BaseUrl:    l.BaseURL,
		Set:        pairsProto(l.Set),
		Remove:     l.Remove,
		Extend:     pairsProto(l.Extend),
		ValidUntil: timeProto(l.ValidUntil),
		Generation: l.Generation,
	}
}

func eventFromProto(e *providerv1.Event) Event { return Event{Type: e.GetType(), Data: e.GetData()} }

func responseFromProto(req *providerv1.ClassifyRequest) Response {
	resp := Response{
		Model:         req.GetModel(),
		Route:         req.GetRoute(),
		RequestHeader: headerFromProto(req.GetRequestHeaders()),
		RequestFields: req.GetRequestFields(),
		Status:        int(req.GetStatus()),
		Header:        headerFromProto(req.GetResponseHeaders()),
		Body:          req.GetBody(),
		Committed:     req.GetCommitted(),
		ObservedAt:    timeFromProto(req.GetObservedAt()),
	}
	if req.GetEvent() != nil {
		event := eventFromProto(req.GetEvent())
		resp.Event = &event
	}
	return resp
}

func observationFromProto(req *providerv1.ObserveRequest) Observation {
	obs := Observation{
		Model:      req.GetModel(),
		Status:     int(req.GetStatus()),
		Header:     headerFromProto(req.GetResponseHeaders()),
		ObservedAt: timeFromProto(req.GetObservedAt()),
		Completion: req.GetCompletion(),
	}
	for _, e := range req.GetEvents() {
		obs.Events = append(obs.Events, eventFromProto(e))
	}
	return obs
}

// windowsProto fills what an author may leave out: state, source and time of observation.
func windowsProto(windows []Window, source Source, at time.Time) []*providerv1.Window {
	var out []*providerv1.Window
	for _, w := range windows {
		if w.State == providerv1.WindowState_WINDOW_STATE_UNSPECIFIED {
			w.State = StateUnknown
			if w.UsedPercent != nil {
				w.State = StateObserved
			}
		}
		if w.Source == providerv1.Source_SOURCE_UNSPECIFIED {
			w.Source = source
		}
		if w.ObservedAt.IsZero() {
			w.ObservedAt = at
		}
		out = append(out, &providerv1.Window{
			WindowId:      w.ID,
			Kind:          w.Kind,
			LengthSeconds: int64(w.Length / time.Second),
			Models:        w.Models,
			UsedPercent:   w.UsedPercent,
			ResetsAt:      timeProto(w.ResetsAt),
			State:         w.State,
			Source:        w.Source,
			ObservedAt:    timeProto(w.ObservedAt),
			Label:         w.Label,
		})
	}
	return out
}

func declarationsProto(windows []WindowDeclaration) []*providerv1.WindowDeclaration {
	var out []*providerv1.WindowDeclaration
	for _, w := range windows {
		out = append(out, &providerv1.WindowDeclaration{WindowId: w.ID, Kind: w.Kind,
			LengthSeconds: int64(w.Length / time.Second), Models: w.Models, Label: w.Label})
	}
	return out
}

func answerProto(a Answer) *providerv1.Answer {
	return &providerv1.Answer{Status: int32(a.Status), Headers: pairsProto(a.Header), Body: a.Body}
}

func commandProto(c Command) *providerv1.OfficialCommand {
	return &providerv1.OfficialCommand{Argv: c.Argv, Environment: c.Env, Unset: c.Unset}
}

func catalogProto(c Catalog) *providerv1.ListModelsResponse {
	out := &providerv1.ListModelsResponse{ClientVersion: c.ClientVersion, Source: c.Source, ReadAt: timeProto(c.ReadAt)}
	for _, m := range c.Models {
		out.Models = append(out.Models, &providerv1.Model{Id: m.ID, DisplayName: m.DisplayName, Efforts: m.Efforts,
			DefaultEffort: m.DefaultEffort, IsDefault: m.Default, Hidden: m.Hidden, Upgrade: m.Upgrade})
	}
	return out
}

func unavailabilityFromProto(req *providerv1.UnavailableRequest) Unavailability {
	u := Unavailability{
		RequestID:       req.GetRequestId(),
		Route:           req.GetRoute(),
		Model:           req.GetModel(),
		Streaming:       req.GetStreaming(),
		Causes:          map[Cause]int{},
		GoverningWindow: req.GetGoverningWindow(),
		ForecastAt:      timeFromProto(req.GetForecastAt()),
		ForecastKind:    req.GetForecastKind(),
		Sentence:        req.GetSentence(),
		Now:             timeFromProto(req.GetNow()),
	}
	for _, c := range req.GetCauses() {
		u.Causes[c.GetCause()] += int(c.GetAccounts())
	}
	return u
}
