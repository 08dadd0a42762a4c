// Random numbers as hashes, with the mixing function of SplitMix64 (Steele, Lea, Flood 2014).
#pragma once

#include "aibox.h"

typedef unsigned long long word64;

const word64 GOLDEN_GAMMA = 0x9e3779b97f4a7c15ull; // splitmix.Step

// splitmix.Mix
DEVICE word64 mix_bits(word64 h) {
	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
	h = (h ^ h >> 27) * 0x94d049bb133111ebull;
	return h ^ h >> 31;
}
