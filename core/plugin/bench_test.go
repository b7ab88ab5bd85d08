package plugin

import (
	"context"
	"testing"
	"time"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// BenchmarkCall measures one call of a real adapter process, checked answer included.
func BenchmarkCall(b *testing.B) {
	bench := newBench(b, designTiming(), Hooks{})
	bench.ready(bench.fake(fakeConfig{}))
	c := bench.client()
	var took []float64
	for b.Loop() {
		began := time.Now()
		if _, err := c.Classify(context.Background(), "work", &providerv1.ClassifyRequest{Status: 429}, began); err != nil {
			b.Fatal(err)
		}
		took = append(took, float64(time.Since(began).Microseconds()))
	}
	p50, p99 := percentiles(took)
	b.ReportMetric(p50, "p50-µs")
	b.ReportMetric(p99, "p99-µs")
}

// BenchmarkStartToReady measures from the wish to a configured adapter: verification, process, handshake, Init,
// Configure, Profile.
func BenchmarkStartToReady(b *testing.B) {
	bench := newBench(b, designTiming(), Hooks{})
	bench.ready(bench.fake(fakeConfig{}))
	for b.Loop() {
		if err := bench.host.Restart(context.Background(), "fake"); err != nil {
			b.Fatal(err)
		}
	}
}
