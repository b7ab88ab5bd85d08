package quota

import (
	"math"
	"testing"
	"time"
)

func TestDemand(t *testing.T) {
	var d Demand
	near(t, "prior ν", d.PerHour(), 40)
	near(t, "prior L", d.ActiveHours(), 1)
	near(t, "cadence of a new session", d.NewSessionCadence(), 20)
	d.Continued(30 * time.Minute)
	near(t, "ν", d.PerHour(), 201/5.5)
	near(t, "L while nothing ended", d.ActiveHours(), 5.5/5)
	d.PeriodEnded()
	near(t, "L", d.ActiveHours(), 5.5/6)
	d.Continued(-time.Hour)
	if d.Hours > 0.5 {
		t.Errorf("hours = %v: a clock that went back added exposure", d.Hours)
	}
}

func TestCadenceFades(t *testing.T) {
	var c Cadence
	c.Add("m", 20, start)
	near(t, "per hour", c.PerHour("m", start), 40)
	near(t, "per hour after its memory", c.PerHour("m", start.Add(CadenceMemory)), 40/math.E)
	c.Add("m", -100, start)
	near(t, "never below zero", c.PerHour("m", start), 0)
	c.Add("n", 1, start.Add(-time.Hour))
	near(t, "a clock that went back fades nothing", c.PerHour("n", start), 2)
}
