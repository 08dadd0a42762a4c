package cuda

// PinnedBytes is the pinned memory of the slots.
func (e *Engine) PinnedBytes() int64 { return e.slots[0].bytes() + e.slots[1].bytes() }
