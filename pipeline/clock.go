package pipeline

import (
	"math"
	"sync"
	"time"
)

// State is what a stage is doing.
type State uint8

const (
	Idle    State = iota // not started, or ended
	Busy                 // in its own function
	Starved              // waiting for input
	Blocked              // waiting for room in the next queue
)

func (s State) String() string {
	return [...]string{"idle", "busy", "starved", "blocked"}[s]
}

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// clock measures one stage. The stage's goroutine drives it, any goroutine may
// read it.
type clock struct {
	mu      sync.Mutex
	state   State
	since   time.Time                  // when state was entered
	spent   [Blocked + 1]time.Duration // per state, before since
	started time.Time
	ended   time.Time // zero while running

	itemStart time.Duration // spent[Busy] when work on the current item began
	items     int64
	min, max  time.Duration
	mean, m2  float64 // of the busy seconds per item, Welford's recurrence
}

func (c *clock) start(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started, c.since, c.state = now, now, Busy
}

func (c *clock) end(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enterLocked(Idle, now)
	c.ended = now
}

func (c *clock) enter(s State, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enterLocked(s, now)
}

func (c *clock) enterLocked(s State, now time.Time) {
	c.spent[c.state] += now.Sub(c.since)
	c.state, c.since = s, now
}

// begin marks the start of the work on an item.
func (c *clock) begin(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enterLocked(Busy, now)
	c.itemStart = c.spent[Busy]
}

// item marks the end of the work on an item.
func (c *clock) item(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enterLocked(Busy, now)
	d := c.spent[Busy] - c.itemStart
	c.itemStart = c.spent[Busy]
	c.items++
	if c.items == 1 || d < c.min {
		c.min = d
	}
	c.max = max(c.max, d)
	delta := d.Seconds() - c.mean
	c.mean += delta / float64(c.items)
	c.m2 += delta * (d.Seconds() - c.mean)
}

// read fills in the clock's part of st and returns the time up to which that part is
// valid: now, or the end of the stage.
func (c *clock) read(now time.Time, st *StageStats) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started.IsZero() {
		return now
	}
	spent := c.spent
	end := c.ended
	if end.IsZero() {
		end = now
		spent[c.state] += now.Sub(c.since)
	}
	st.State = c.state
	st.Items = c.items
	st.Elapsed = end.Sub(c.started)
	st.Busy, st.Starved, st.Blocked = spent[Busy], spent[Starved], spent[Blocked]
	if c.items > 0 {
		st.ItemMin, st.ItemMax = c.min, c.max
		st.ItemMean = seconds(c.mean)
		st.ItemStddev = seconds(math.Sqrt(c.m2 / float64(c.items)))
	}
	return end
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// meter averages the length of a queue over time. The stages at both ends call tick after
// every change.
type meter struct {
	length func() int

	mu       sync.Mutex
	capacity int
	started  time.Time
	last     time.Time
	present  int
	area     float64 // length integrated over seconds, up to last
}

func (m *meter) start(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.started, m.last = now, now
}

func (m *meter) tick(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tickLocked(now)
}

func (m *meter) setCapacity(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = n
}

func (m *meter) tickLocked(now time.Time) {
	if d := now.Sub(m.last); d > 0 { // the two ends read the clock before they lock
		m.area += float64(m.present) * d.Seconds()
		m.last = now
	}
	m.present = m.length()
}

// read fills in the queue's part of st.
func (m *meter) read(now time.Time, st *StageStats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	st.QueueCap = m.capacity
	if m.started.IsZero() {
		return
	}
	m.tickLocked(now)
	st.QueueLen = m.present
	if d := m.last.Sub(m.started).Seconds(); d > 0 {
		st.QueueMean = m.area / d
	}
}
