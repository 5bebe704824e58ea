// What an informer's handlers and streams may see. A server that restarts must show every event; a copy of it that was cut
// off may show several changes as one, and may repeat a deletion, but never goes back and never loses.
package main

type rules struct {
	// Each event is remembered and compared with the whole history.
	everyEvent bool
	// A list after the first one tells again what is known; whether that was due is judged by the count of lists.
	relisted bool
	// The server was set back to an older state: until the next verification versions may be lower.
	forgiven bool
}

// against tells whether a handler must not be told this, when a version of the same key is known or nothing is.
func (r rules) against(what string, version, last int64, known bool) bool {
	switch {
	case r.everyEvent && !r.relisted:
		return known == (what == "add") || version <= last
	case r.forgiven:
		return known == (what == "add") && what != "delete"
	case what == "delete":
		// It carries the version at which it became known; a deletion may be told again after a cut.
		return version < last
	case r.relisted:
		return known == (what == "add") || version < last
	default:
		return known == (what == "add") || version <= last
	}
}
