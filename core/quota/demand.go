package quota

import (
	"math"
	"time"
)

// Demand estimates what a session asks for: how often while it is active, and how much longer it stays active. An active
// period is a run of accepted requests with gaps under ActivePeriodGap. Only ended periods count as ends, else a burst of
// new sessions would make all sessions look short and hide itself.
const (
	// ActivePeriodGap without a request ends an active period.
	ActivePeriodGap = 30 * time.Minute

	// CadenceMemory is the time constant of cadences.
	CadenceMemory = 30 * time.Minute

	demandFade      = 0.9995
	priorSessions   = 5
	priorPerHour    = 40
	priorActiveHour = 1
)

// Demand holds the pool-wide sums of active periods; they fade with every event.
type Demand struct {
	Events float64 `json:"events"`
	Hours  float64 `json:"hours"`
	Ended  float64 `json:"ended"`
}

// Continued adds one accepted request within an active period, with the time since the one before.
func (d *Demand) Continued(gap time.Duration) {
	d.Events = d.Events*demandFade + 1
	d.Hours = d.Hours*demandFade + max(gap, 0).Hours()
	d.Ended *= demandFade
}

// PeriodEnded adds the end of one active period.
func (d *Demand) PeriodEnded() { d.Ended++ }

// PerHour is ν: requests per active hour of a session.
func (d Demand) PerHour() float64 {
	return (priorSessions*priorPerHour*priorActiveHour + d.Events) / (priorSessions*priorActiveHour + d.Hours)
}

// ActiveHours is L: the active hours that a session still has, on average.
func (d Demand) ActiveHours() float64 {
	return (priorSessions*priorActiveHour + d.Hours) / (priorSessions + d.Ended)
}

// NewSessionCadence is the count that a session starts with: what it would have if it had always asked ν times an hour.
func (d Demand) NewSessionCadence() float64 { return d.PerHour() * CadenceMemory.Hours() }

// ActiveWithin is F(h): the expected active hours of a session within the next h hours, when L are left on average.
func ActiveWithin(h, L float64) float64 { return L * (1 - math.Exp(-h/L)) }

// Faded is a count that loses weight with CadenceMemory.
type Faded struct {
	Count float64   `json:"count"`
	At    time.Time `json:"at,omitzero"`
}

// Value is the count at that time; time that went backwards fades nothing.
func (f Faded) Value(at time.Time) float64 {
	if f.Count == 0 {
		return 0
	}
	return f.Count * fade(at.Sub(f.At))
}

// Plus adds to the count, never below zero.
func (f Faded) Plus(delta float64, at time.Time) Faded {
	return Faded{Count: max(0, f.Value(at)+delta), At: at}
}

func fade(elapsed time.Duration) float64 {
	if elapsed <= 0 {
		return 1
	}
	return math.Exp(-elapsed.Seconds() / CadenceMemory.Seconds())
}

// ModelRate is a fading count of the requests of one model.
type ModelRate struct {
	Model string  `json:"model"`
	Count float64 `json:"count"`
}

// Cadence counts the requests that the sessions bound to an account send, per model, with the memory of CadenceMemory.
type Cadence struct {
	Models []ModelRate `json:"models,omitempty"`
	At     time.Time   `json:"at,omitzero"`
}

// Add changes the count of a model, never below zero.
func (c *Cadence) Add(model string, delta float64, at time.Time) {
	if at.After(c.At) {
		keep := fade(at.Sub(c.At))
		for i := range c.Models {
			c.Models[i].Count *= keep
		}
		c.At = at
	}
	for i := range c.Models {
		if c.Models[i].Model == model {
			c.Models[i].Count = max(0, c.Models[i].Count+delta)
			return
		}
	}
	if len(c.Models) >= maxModels && model != OtherModels {
		c.Add(OtherModels, delta, at)
		return
	}
	c.Models = append(c.Models, ModelRate{Model: model, Count: max(0, delta)})
}

// factor turns a stored count into requests per hour at that time.
func (c *Cadence) factor(at time.Time) float64 { return fade(at.Sub(c.At)) / CadenceMemory.Hours() }

// PerHour is the rate of one model at that time.
func (c *Cadence) PerHour(model string, at time.Time) float64 {
	for i := range c.Models {
		if c.Models[i].Model == model {
			return c.Models[i].Count * c.factor(at)
		}
	}
	return 0
}
