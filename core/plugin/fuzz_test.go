package plugin

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

func FuzzHandshakeIsAcceptedOnlyForASocketOfOurs(f *testing.F) {
	dir, err := os.MkdirTemp("", "nf")
	must(f, err)
	f.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	must(f, err)
	f.Cleanup(func() { _ = l.Close() })
	certificate := testCertificate(f)
	good := "1|1|unix|" + socket + "|grpc|" + certificate
	f.Add(good)
	files, err := filepath.Glob("testdata/hostile/handshake/*.txt")
	must(f, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		must(f, err)
		f.Add(strings.TrimSuffix(string(raw), "\n"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		failure := checkHandshake(line, dir)
		if failure != nil {
			noRaw(t, "failure", failure.Error())
			return
		}
		fields := strings.Split(line, "|")
		if fields[2] != "unix" || fields[3] != socket || fields[4] != "grpc" {
			t.Errorf("accepted %q", line)
		}
	})
}

func FuzzOutputIsLoggedOnOneHarmlessLine(f *testing.F) {
	for _, line := range []string{`{"@message": 1}`, `{"@level":"info","@message":"m","k":{}}`, "plain", "{", `{"@level":"info","":[1e999]}`, "\xff\xfe", "a\x1b[2Jb"} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		log := &syncBuffer{}
		newTestOutput(log).line(raw, false)
		text := log.String()
		noRaw(t, "log", text)
		if strings.Count(text, "\n") > 1 {
			t.Errorf("%q makes %d lines", raw, strings.Count(text, "\n"))
		}
	})
}

func FuzzAnswersOfAnAdapterStaySane(f *testing.F) {
	seed, err := proto.Marshal(&providerv1.ObserveResponse{Windows: fakeWindows(50)})
	must(f, err)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var observed providerv1.ObserveResponse
		if proto.Unmarshal(raw, &observed) == nil {
			sane(t, testCheck.readings(observed.GetWindows(), quota.SourceResponseHeader, testNow))
		}
		var classified providerv1.ClassifyResponse
		if proto.Unmarshal(raw, &classified) == nil {
			v := testCheck.verdict(&classified, &providerv1.ClassifyRequest{Model: "m"}, testNow, testNow)
			sane(t, v.Rejection.Windows)
			if fits, ok := fittingScope(v.Outcome, v.Scope); !ok || fits != v.Scope {
				t.Errorf("verdict %v %v", v.Outcome, v.Scope)
			}
		}
		var leased providerv1.LeaseResponse
		if proto.Unmarshal(raw, &leased) == nil {
			if got, err := testCheck.lease(&leased, testNow); err == nil && (!isUpstream(got.BaseURL) || !got.ValidUntil.After(testNow)) {
				t.Errorf("lease for %q until %v", got.BaseURL, got.ValidUntil)
			}
		}
	})
}
