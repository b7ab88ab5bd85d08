package plugintest

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// hostileValues are values of headers and fields that some parser somewhere accepts.
func hostileValues() []string {
	return []string{"", " ", "NaN", "+Inf", "-Infinity", "0x1p-1", "1e3", "1e-400", "-0", "-5", "+5", "1_000", "42%", "4,2", "٤٢", "null", "true",
		"250", "999999999999999999999999", "1796014800.75", "1796014800000", "1", "0", "9999-12-31T23:59:59Z", "2001-01-01T00:00:00Z",
		"2026-12-31T23:59:60Z", "Mon, 01 Jan 2001 00:00:00 GMT", "\x1b[31mred\x1b[0m", "a\r\nb", strings.Repeat("9", 8<<10), "\u202Etxt.exe"}
}

// hostileBodies are bodies and event data.
func hostileBodies() map[string][]byte {
	return map[string][]byte{
		"an empty body":            {},
		"bytes that are no text":   {0x1f, 0x8b, 0x08, 0x00, 0xff, 0xfe, 0x00},
		"HTML":                     []byte("<html><body>challenge</body></html>"),
		"a cut JSON":               []byte(`{"error":{"type":"rate_limit`),
		"an array":                 []byte(`[]`),
		"null":                     []byte(`null`),
		"20,000 levels":            []byte(strings.Repeat("[", 20_000)),
		"wrong types":              []byte(`{"error":[1,{"type":7}],"type":{},"message":null,"code":[[]],"resets_at":"soon","resets_in_seconds":-1}`),
		"doubled keys":             []byte(`{"error":{"type":"a","type":1},"error":null}`),
		"bad UTF-8 in JSON":        []byte("{\"error\":{\"type\":\"\xff\xfe\"}}"),
		"a lone surrogate in JSON": []byte(`{"error":{"type":"\ud800"}}`),
	}
}

const (
	fixPanic    = "read input without trusting it: check types, lengths and ranges"
	fixInvented = "leave out what cannot be read strictly; only an authoritative zero or a rejection that names it exhausts a window"
)

func (s *suite) checkHostile(ctx context.Context, f *findings) {
	s.hostileEvidence(ctx, f)
	s.hostileTelemetry(ctx, f)
	probe, cancel := context.WithTimeout(ctx, otherTime)
	defer cancel()
	if _, err := s.plugin.Describe(probe, &pluginv1.DescribeRequest{}); err != nil {
		f.add(fixPanic, "after hostile input it serves no more: %v", err)
	}
}

// hostileEvidence puts hostile bodies and values into every case.
func (s *suite) hostileEvidence(ctx context.Context, f *findings) {
	try := func(where string, req *providerv1.ClassifyRequest) {
		if f.late {
			return
		}
		got, err := s.classify(ctx, req)
		if err == nil {
			checkVerdict(where, got, req, f)
		}
		f.failed(where+": Classify", err)
	}
	for _, c := range s.fixtures.Outcomes {
		base, _ := s.evidence(c)
		for what, data := range hostileBodies() {
			req := proto.CloneOf(base)
			if event := req.GetEvent(); event != nil {
				event.Data = data
			} else {
				req.Evidence = &providerv1.ClassifyRequest_Body{Body: data[:min(len(data), int(s.profile.GetExposure().GetErrorBodyBytes()))]}
			}
			try(fmt.Sprintf("case %q with %s", c.Name, what), req)
		}
		for i, h := range base.GetResponseHeaders() {
			for _, value := range hostileValues() {
				req := proto.CloneOf(base)
				req.ResponseHeaders[i].Value = value
				try(fmt.Sprintf("case %q with the header %s: %.20q", c.Name, h.GetName(), value), req)
			}
		}
	}
	for _, code := range []int32{-1, 0, 100, 200, 302, 399, 418, 451, 599, 600, 1 << 30} {
		try(fmt.Sprintf("status %d", code), &providerv1.ClassifyRequest{Account: s.fixtures.leased(), Status: code,
			ObservedAt: s.hostileTime()})
	}
}

// hostileTelemetry puts hostile values into every case. What cannot be read must not exhaust a window that was not.
func (s *suite) hostileTelemetry(ctx context.Context, f *findings) {
	for _, c := range s.fixtures.Telemetry {
		base, _ := s.observation(c)
		normal, err := s.observe(ctx, base)
		if err != nil {
			continue
		}
		exhausted := exhaustedIn(normal)
		try := func(where string, req *providerv1.ObserveRequest) {
			if f.late {
				return
			}
			got, err := s.observe(ctx, req)
			if err != nil {
				f.failed(where+": Observe", err)
				return
			}
			checkWindows(where, got.GetWindows(), req.GetObservedAt().AsTime(), f)
			for id := range exhaustedIn(got) {
				if !exhausted[id] {
					f.add(fixInvented, "%s: window %s becomes exhausted", where, id)
				}
			}
		}
		for i, h := range base.GetResponseHeaders() {
			for _, value := range hostileValues() {
				req := proto.CloneOf(base)
				req.ResponseHeaders[i].Value = value
				try(fmt.Sprintf("case %q with the header %s: %.20q", c.Name, h.GetName(), value), req)
			}
			twice := proto.CloneOf(base)
			twice.ResponseHeaders = append(twice.ResponseHeaders, &providerv1.Header{Name: h.GetName(), Value: "1"})
			try(fmt.Sprintf("case %q with the header %s twice", c.Name, h.GetName()), twice)
		}
		for i, e := range base.GetEvents() {
			for what, data := range hostileBodies() {
				req := proto.CloneOf(base)
				req.Events[i].Data = data
				try(fmt.Sprintf("case %q with %s in the event %s", c.Name, what, e.GetType()), req)
			}
		}
	}
}

// failed tells of an error that hostile input must not cause. Others are an adapter's way to say that it cannot read it.
func (f *findings) failed(where string, err error) {
	switch {
	case status.Code(err) == codes.DeadlineExceeded:
		f.late = true
		f.add("bound the work by what the daemon waits for", "%s: %v; the rest was not tried", where, err)
	case isPanic(err):
		f.add(fixPanic, "%s: %v", where, err)
	}
}

func exhaustedIn(resp *providerv1.ObserveResponse) map[string]bool {
	exhausted := map[string]bool{}
	for _, w := range resp.GetWindows() {
		if w.GetState() == providerv1.WindowState_WINDOW_STATE_EXHAUSTED {
			exhausted[w.GetWindowId()] = true
		}
	}
	return exhausted
}
