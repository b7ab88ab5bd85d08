package placement

import (
	"fmt"
	"testing"
)

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("accounts=%d", n), func(b *testing.B) {
			v := View{Fit: DefaultFit}
			for i := range n {
				a := read(fmt.Sprintf("a%d", i), float64(i%90), 4, float64(i%80), 100)
				a.Begin("m")
				a.Complete("m", now)
				a.Cadence.Add("m", 3, now)
				v.Accounts = append(v.Accounts, a)
			}
			req := request()
			b.ReportAllocs()
			for b.Loop() {
				if d := Decide(v, req); !d.Placed {
					b.Fatal("nothing placed")
				}
			}
		})
	}
	b.Run("bound/accounts=1000", func(b *testing.B) {
		v := View{Fit: DefaultFit}
		for i := range 1000 {
			v.Accounts = append(v.Accounts, read(fmt.Sprintf("a%d", i), 10, 4, 10, 100))
		}
		v.Bound = v.Accounts[500]
		req := request()
		b.ReportAllocs()
		for b.Loop() {
			if d := Decide(v, req); d.How != HowBound {
				b.Fatal("not kept")
			}
		}
	})
}
