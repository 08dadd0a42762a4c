package refpool

import "testing"

// TestListsAreCounted checks that a returned list is reused if its size is suitable, and that Held
// returns the bytes of all lists that are kept or in use.
func TestListsAreCounted(t *testing.T) {
	var p Pool
	var lists [][]uint32
	for range MaxIdle + 1 {
		lists = append(lists, make([]uint32, 100))
		p.Held += 400
	}
	for _, l := range lists {
		p.Give(l)
	}
	if p.Held != 400*MaxIdle {
		t.Errorf("%d bytes are held, want those of %d lists", p.Held, MaxIdle)
	}
	if p.Take(101) != nil || p.Take(49) != nil {
		t.Error("a list of 100 was taken for more, or for less than half")
	}
	if l := p.Take(60); len(l) != 60 || p.Held != 400*MaxIdle {
		t.Errorf("%v was taken, %d bytes are held", l, p.Held)
	}
	if freed := p.DropSmaller(100); freed != 0 {
		t.Errorf("%d bytes freed of lists that are long enough", freed)
	}
	if freed := p.DropSmaller(101); freed != 400*(MaxIdle-1) || p.Held != 400 {
		t.Errorf("%d bytes freed, %d held", freed, p.Held)
	}
	p.Give(make([]uint32, 100))
	if freed := p.Drop(); freed != 400 || p.Held != 0 {
		t.Errorf("%d bytes freed, %d held", freed, p.Held)
	}
}
