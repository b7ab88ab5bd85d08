package sdk

import "time"

// WindowOf begins a window that is known by nothing but its length, which is where its meaning comes from whatever slot
// or header it arrived in: the id is its label (5h, 1d, weekly), the kind weekly, monthly (28 to 31 days) or rolling.
// length must be a positive number of whole minutes; else the window has no id.
func WindowOf(length time.Duration) Window {
	const day = 24 * time.Hour
	kind := WindowRolling
	switch {
	case length == 7*day:
		kind = WindowWeekly
	case length >= 28*day && length <= 31*day:
		kind = WindowMonthly
	}
	return Window{ID: WindowLabel(length), Kind: kind, Length: length}
}

// Declaration declares the window for [Profile.Windows].
func (w Window) Declaration() WindowDeclaration {
	return WindowDeclaration{ID: w.ID, Kind: w.Kind, Length: w.Length, Models: w.Models, Label: w.Label}
}
