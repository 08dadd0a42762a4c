// The workload as bench/table/external/README.md defines it: rows, their
// update, the digest, and the file with the mini-batches' keys.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

struct Layout {
  int value_dim = 0, state_dim = 0;
  int words() const { return value_dim + state_dim + 4; }
};

// init_row is the row of a key that nobody has seen.
inline void init_row(const Layout& l, uint64_t key, float* row) {
  uint64_t x = key;
  for(int i = 0; i < l.words(); ++i) {
    row[i] = 0;
  }
  for(int i = 0; i < l.value_dim; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    row[i] = (float(x >> 40) / float(1 << 24) - 0.5f) * 0.02f;
  }
}

// load_row is the row of a key in a full store: trained once.
inline void load_row(const Layout& l, uint64_t key, float* row) {
  init_row(l, key, row);
  float* stats = row + l.value_dim + l.state_dim;
  stats[0] = 1;
  stats[3] = std::bit_cast<float>(uint32_t{ 1 });
}

constexpr uint64_t kDigestFactor = 0x9e3779b97f4a7c15u;

// update trains a row. It returns digest with what the row held before folded in.
inline uint64_t update(const Layout& l, float* row, uint64_t digest) {
  float* state = row + l.value_dim;
  float* stats = state + l.state_dim;
  uint32_t count = std::bit_cast<uint32_t>(stats[3]);
  digest = digest * kDigestFactor + (uint64_t(count) << 32) + std::bit_cast<uint32_t>(row[0]);
  for(int i = 0; i < l.value_dim; ++i) {
    row[i] -= 0.01f * (row[i] + 0.001f);
  }
  for(int i = 0; i < l.state_dim; ++i) {
    state[i] += 0.5f;
  }
  stats[0] += 1;
  stats[3] = std::bit_cast<float>(count + 1);
  return digest;
}

// power is the factor by which n more rows multiply a digest. It serves to join the digests
// of parts of a mini-batch.
inline uint64_t power(uint64_t n) {
  uint64_t p = 1;
  for(uint64_t f = kDigestFactor; n > 0; n >>= 1, f *= f) {
    if(n & 1) {
      p *= f;
    }
  }
  return p;
}

// KeyFile reads mini-batches of keys: for each its number of keys and the keys,
// all as 8 bytes, little-endian.
class KeyFile {
 public:
  explicit KeyFile(const std::string& path) : path_{ path }, file_{ std::fopen(path.c_str(), "rb") } {
    if(!file_) {
      throw std::runtime_error{ "cannot open " + path };
    }
  }
  ~KeyFile() { std::fclose(file_); }
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;

  // next reads a mini-batch. It returns false when there are no more.
  bool next(std::vector<uint64_t>& keys) {
    uint64_t n;
    if(std::fread(&n, sizeof n, 1, file_) != 1) {
      return false;
    }
    keys.resize(n);
    if(std::fread(keys.data(), sizeof n, n, file_) != n) {
      throw std::runtime_error{ path_ + " ends within a mini-batch" };
    }
    return true;
  }

 private:
  std::string path_;
  std::FILE* file_;
};
