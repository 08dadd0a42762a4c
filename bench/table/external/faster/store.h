// A FasterKv with fixed-size rows, driven by several threads.
#pragma once

#include <atomic>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/faster.h"
#include "device/file_system_disk.h"
#include "environment/file.h"

#include "workload.h"

namespace fc = FASTER::core;

struct Key {
  uint64_t key;
  static constexpr uint32_t size() { return sizeof(Key); }
  // Keys of the workload are well mixed in all their bits.
  fc::KeyHash GetHash() const { return fc::KeyHash{ key }; }
  bool operator==(const Key& other) const { return key == other.key; }
  bool operator!=(const Key& other) const { return key != other.key; }
};

struct alignas(8) Value {
  uint8_t bytes[ROW_BYTES];
  static constexpr uint32_t size() { return sizeof(Value); }
};
static_assert(sizeof(Value) == ROW_BYTES, "rows are multiples of 8 bytes");

// No key is in two places of a mini-batch, and pulls and pushes do not overlap,
// so copies need no lock.
class ReadContext : public fc::IAsyncContext {
 public:
  typedef Key key_t;
  typedef Value value_t;
  ReadContext(Key key, const Layout* layout, float* row) : key_{ key }, layout{ layout }, row{ row } {}
  ReadContext(const ReadContext& other) : key_{ other.key_ }, layout{ other.layout }, row{ other.row } {}
  const key_t& key() const { return key_; }
  void Get(const value_t& value) { std::memcpy(row, value.bytes, sizeof value.bytes); }
  void GetAtomic(const value_t& value) { Get(value); }
  // done ends a read. It reports whether the read succeeded.
  bool done(fc::Status s) const {
    if(s == fc::Status::NotFound) {
      init_row(*layout, key_.key, row);
    }
    return s == fc::Status::Ok || s == fc::Status::NotFound;
  }

 protected:
  fc::Status DeepCopy_Internal(fc::IAsyncContext*& copy) override {
    return fc::IAsyncContext::DeepCopy_Internal(*this, copy);
  }

 private:
  Key key_;
  const Layout* layout;
  float* row;
};

class UpsertContext : public fc::IAsyncContext {
 public:
  typedef Key key_t;
  typedef Value value_t;
  UpsertContext(Key key, const float* row) : key_{ key }, row{ row } {}
  UpsertContext(const UpsertContext& other) : key_{ other.key_ }, row{ other.row } {}
  const key_t& key() const { return key_; }
  static constexpr uint32_t value_size() { return sizeof(value_t); }
  static constexpr uint32_t value_size(const value_t&) { return sizeof(value_t); }
  void Put(value_t& value) { std::memcpy(value.bytes, row, sizeof value.bytes); }
  bool PutAtomic(value_t& value) {
    Put(value);
    return true;
  }

 protected:
  fc::Status DeepCopy_Internal(fc::IAsyncContext*& copy) override {
    return fc::IAsyncContext::DeepCopy_Internal(*this, copy);
  }

 private:
  Key key_;
  const float* row;
};

class Store {
 public:
  static constexpr uint64_t kPageBytes = uint64_t{ fc::Address::kMaxOffset } + 1;
  static constexpr uint64_t kSegmentBytes = uint64_t{ 1 } << 26;
  typedef FASTER::device::FileSystemDisk<FASTER::environment::QueueIoHandler, kSegmentBytes> Disk;
  typedef fc::FasterKv<Key, Value, Disk> Kv;
  static_assert(kPageBytes <= kSegmentBytes);

  struct Options {
    std::string dir;
    uint64_t log_bytes;
    double mutable_part;
    uint64_t index_buckets; // of 64 bytes
    int threads;
  };

  // This one makes an empty store.
  explicit Store(const Options& o) : o_{ o }, kv_{ o.index_buckets, o.log_bytes, o.dir, o.mutable_part } {
    kv_.StartSession();
    start();
  }

  // This one opens the store of a checkpoint, with nothing in memory.
  Store(const Options& o, const std::string& token) : o_{ o }, kv_{ o.index_buckets, o.log_bytes, o.dir, o.mutable_part } {
    uint32_t version;
    std::vector<fc::Guid> sessions;
    fc::Guid guid = fc::Guid::Parse(token);
    if(fc::Status s = kv_.Recover(guid, guid, version, sessions); s != fc::Status::Ok) {
      throw std::runtime_error{ std::string{ "recovery failed: " } + fc::StatusStr(s) };
    }
    kv_.StartSession();
    // Recovery reads as much of the log as fits, but the cache must be empty at the start.
    kv_.hlog.UnsafeBufferResize(o.log_bytes, o.mutable_part);
    start();
  }

  ~Store() {
    stop_ = true;
    kv_.StopSession();
    for(auto& t : others_) {
      t.join();
    }
  }

  // pull reads the rows of keys, which go to rows one after the other.
  void pull(const Layout& l, const std::vector<uint64_t>& keys, float* rows) {
    next_ = 0;
    all([&] {
      for(size_t from; (from = next_.fetch_add(kChunk)) < keys.size();) {
        size_t to = std::min(from + kChunk, keys.size());
        for(size_t i = from; i < to; ++i) {
          ReadContext c{ Key{ keys[i] }, &l, rows + i * l.words() };
          // FASTER itself would wait, too, but yield the processor for each read
          // that ends, which is slow on a busy machine.
          while(reading_ >= max_reading_) {
            kv_.CompletePending(false);
          }
          fc::Status s = kv_.Read(c, read_done, 1);
          if(s == fc::Status::Pending) {
            ++reading_;
          } else if(!c.done(s)) {
            failed_ = true;
          }
        }
        kv_.CompletePending(false);
      }
      kv_.CompletePending(true);
    });
    check("a read failed");
  }

  // push changes all rows with change(i, row, digest) and writes them. It
  // returns digest with those of the rows folded in.
  template <class F>
  uint64_t push(const Layout& l, const std::vector<uint64_t>& keys, float* rows, uint64_t digest, F change) {
    next_ = 0;
    parts_.assign((keys.size() + kChunk - 1) / kChunk, 0);
    all([&] {
      for(size_t from; (from = next_.fetch_add(kChunk)) < keys.size();) {
        size_t to = std::min(from + kChunk, keys.size());
        uint64_t part = 0;
        for(size_t i = from; i < to; ++i) {
          float* row = rows + i * l.words();
          part = change(i, row, part);
          UpsertContext c{ Key{ keys[i] }, row };
          fc::Status s = kv_.Upsert(c, upsert_done, 1);
          if(s != fc::Status::Ok && s != fc::Status::Pending) {
            failed_ = true;
          }
        }
        parts_[from / kChunk] = part;
        kv_.Refresh();
      }
      kv_.CompletePending(true);
    });
    check("an upsert failed");
    for(size_t i = 0; i < parts_.size(); ++i) {
      digest = digest * power(std::min(kChunk, keys.size() - i * kChunk)) + parts_[i];
    }
    return digest;
  }

  // checkpoint makes everything durable. It returns the argument that recovery needs.
  std::string checkpoint() {
    fc::Guid token;
    persisted_ = 0;
    auto failed = [](fc::Status s) {
      if(s != fc::Status::Ok) {
        failed_ = true;
      }
    };
    auto persisted = [](fc::Status s, uint64_t) {
      if(s != fc::Status::Ok) {
        failed_ = true;
      }
      ++persisted_;
    };
    if(!kv_.Checkpoint(failed, persisted, token)) {
      throw std::runtime_error{ "no checkpoint could be started" };
    }
    while(persisted_ < o_.threads) { // FASTER calls back once per thread; idle ones must refresh
      kv_.CompletePending(false);
    }
    kv_.CompletePending(true);
    check("a checkpoint failed");
    return token.ToString();
  }

  // bytes of the log, from its start to its end.
  uint64_t log_bytes() const { return kv_.Size(); }

 private:
  static constexpr size_t kChunk = 256; // keys that a thread takes at a time

  static void read_done(fc::IAsyncContext* context, fc::Status s) {
    fc::CallbackContext<ReadContext> c{ context };
    --reading_;
    if(!c->done(s)) {
      failed_ = true;
    }
  }

  static void upsert_done(fc::IAsyncContext* context, fc::Status s) {
    fc::CallbackContext<UpsertContext> c{ context };
    if(s != fc::Status::Ok) {
      failed_ = true;
    }
  }

  void check(const char* what) {
    if(failed_) {
      throw std::runtime_error{ what };
    }
  }

  // start starts the threads and waits until every one has its session.
  void start() {
    for(int t = 1; t < o_.threads; ++t) {
      others_.emplace_back([this] { serve(); });
    }
    all([] {});
  }

  // all lets every thread, this one included, do work, and waits for them. A thread that is
  // done refreshes its session, because others wait for that to get pages.
  void all(std::function<void()> work) {
    work_ = std::move(work);
    working_ = o_.threads;
    ++round_;
    work_();
    --working_;
    while(working_ > 0) {
      kv_.CompletePending(false);
    }
  }

  void serve() {
    kv_.StartSession();
    for(uint64_t done = 0; !stop_;) {
      if(round_ == done) {
        kv_.CompletePending(false);
        continue;
      }
      ++done;
      work_();
      --working_;
    }
    kv_.StopSession();
  }

  Options o_;
  Kv kv_;
  std::vector<std::thread> others_;
  std::function<void()> work_;
  std::atomic<uint64_t> round_{ 0 };
  std::atomic<int> working_{ 0 };
  std::atomic<bool> stop_{ false };
  std::atomic<size_t> next_{ 0 };
  std::vector<uint64_t> parts_;
  const int max_reading_ = std::max(1, int(Kv::kMaxPendingIOs) / o_.threads);
  static inline thread_local int reading_ = 0; // reads that this thread has on their way
  static inline std::atomic<bool> failed_{ false };
  static inline std::atomic<int> persisted_{ 0 };
};
