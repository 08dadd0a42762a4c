package gpu

// Device is an open device. Names are for errors and profiles; they need not be unique.
type Device interface {
	// Number is that of the physical device.
	Number() int
	Info() Info

	// Alloc returns memory of the device, which begins at a multiple of 256 bytes. The error is
	// OutOfMemory if there is no room.
	Alloc(name string, bytes int) (Memory, error)
	// AllocPinned returns memory of the host that every device of the platform can copy from
	// and to without the help of the host's processors.
	AllocPinned(name string, bytes int) (Pinned, error)
	// FreeMemory returns the free and the total bytes of the physical device. Because of
	// fragmentation and rounding, the largest Alloc that succeeds may be smaller.
	FreeMemory() (free, total int64, err error)

	NewStream(name string) (Stream, error)
	NewEvent(name string) (Event, error)
	// Load makes the kernels of an image available.
	Load(Image) (Module, error)

	// Synchronize waits for all operations of all streams of the device.
	Synchronize() error
	// Close waits as Synchronize does and gives back all that belongs to the device. An
	// error of the device is no error of Close.
	Close() error
}
