package gpu

// Platform is the devices of a machine, as one implementation of this package sees them.
type Platform interface {
	// Name says what the platform is, and its version.
	Name() string
	// Devices describes the physical devices. Their numbers are their places here.
	Devices() []Info
	// Link says how copies get from one physical device to another.
	Link(a, b int) Link
	// Open makes a device of a physical one. The error is InUse if another process has it for
	// itself, WrongDriver if the driver cannot run this program.
	Open(number int) (Device, error)
	// Group joins open devices, each at most once, for sums over all of them.
	Group(devices []Device) (Group, error)
}

// Info describes a physical device.
type Info struct {
	Name            string
	MemoryBytes     int64
	Major, Minor    int // compute capability
	Multiprocessors int
	SharedBytes     int   // most that a block may have
	ProductBytes    int64 // of memory that each stream with products takes; see Stream.PrepareProducts
}

// Link is a connection between two physical devices.
type Link uint8

const (
	LinkHost   Link = iota // through the memory of the host
	LinkPCIe               // directly, over PCIe
	LinkNVLink             // directly, over NVLink
	LinkSame               // both are the same device
)

func (l Link) String() string { return [...]string{"host", "PCIe", "NVLink", "same device"}[l] }
