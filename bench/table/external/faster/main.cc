// table-faster runs phases of bench/table on FASTER. It reads the job as JSON from standard
// input and writes the result as JSON to standard output; see ../README.md.

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "process.h"
#include "store.h"
#include "workload.h"

extern "C" int __wrap_io_submit(io_context_t ctx, long n, struct iocb** list) { return count_io_submit(ctx, n, list); }

namespace {

using json = nlohmann::json;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Unavailable says that this build cannot run the job; that is no failure.
struct Unavailable : std::runtime_error {
  using runtime_error::runtime_error;
};

struct Flags {
  int threads = 2;
  double mutable_part = 0.9;
  double keys_per_bucket = 7; // as many as one holds

  Flags(int argc, char** argv) {
    for(int i = 1; i + 1 < argc; i += 2) {
      std::string name = argv[i];
      if(name == "--threads") {
        threads = std::atoi(argv[i + 1]);
      } else if(name == "--mutable") {
        mutable_part = std::atof(argv[i + 1]);
      } else if(name == "--keys-per-bucket") {
        keys_per_bucket = std::atof(argv[i + 1]);
      } else {
        throw std::runtime_error{ "unknown flag " + name };
      }
    }
    if(argc % 2 == 0 || threads < 1 || threads > 32 || mutable_part <= 0 || mutable_part > 1 || keys_per_bucket <= 0) {
      throw std::runtime_error{ "flags: --threads 1 to 32, --mutable 0 to 1, --keys-per-bucket above 0" };
    }
  }
};

Store::Options options(const json& job, const Flags& f) {
  Store::Options o;
  o.dir = job.at("dir");
  o.threads = f.threads;
  uint64_t pages = job.at("budget_bytes").get<uint64_t>() / Store::kPageBytes;
  if(pages < 6) {
    throw Unavailable{ "a log of fewer than 6 pages of " + std::to_string(Store::kPageBytes >> 10) + " KiB" };
  }
  o.log_bytes = pages * Store::kPageBytes;
  // Four pages must be left to what is on its way to the disk.
  o.mutable_part = std::min(f.mutable_part, (double(pages) - 4) / double(pages));
  for(o.index_buckets = 64; double(o.index_buckets) * f.keys_per_bucket < job.at("keys").get<double>();) {
    o.index_buckets *= 2;
  }
  return o;
}

class Player {
 public:
  Player(const json& job, const Flags& f) : job_{ job }, flags_{ f }, layout_{ job.at("value_dim"), job.at("state_dim") } {
    if(4 * layout_.words() != ROW_BYTES) {
      throw Unavailable{ "built for rows of " + std::to_string(ROW_BYTES) + " bytes, not " + std::to_string(4 * layout_.words()) };
    }
    if(job.at("train_ms") > 0) {
      throw Unavailable{ "does not pull beside a trainer" };
    }
  }

  json run() {
    Store::Options o = options(job_, flags_);
    std::string phase = job_.at("phase");
    std::filesystem::path token = std::filesystem::path{ o.dir } / "token";
    if(phase != "load") {
      read_trace();
    }
    reset_peak();
    result_["base_bytes"] = resident_bytes();
    auto start = Clock::now();
    std::unique_ptr<Store> s;
    if(phase == "p2") {
      std::string t;
      std::ifstream{ token } >> t;
      s = std::make_unique<Store>(o, t);
    } else {
      s = std::make_unique<Store>(o);
    }
    result_["open_ms"] = ms_since(start);
    if(phase == "load") {
      load(*s);
    } else {
      play(*s);
    }
    start = Clock::now();
    std::ofstream{ token } << s->checkpoint();
    result_["save_ms"] = ms_since(start);
    result_["saved_write_bytes"] = DeviceBytes{}.written - before_.written;
    result_["peak_bytes"] = peak_resident_bytes();
    result_["store"] = { { "log_bytes", s->log_bytes() },        { "log_memory_bytes", o.log_bytes },
                         { "index_bytes", o.index_buckets * 64 }, { "mutable_part", o.mutable_part },
                         { "page_bytes", Store::kPageBytes },     { "threads", o.threads } };
    return result_;
  }

 private:
  void load(Store& s) {
    auto start = Clock::now();
    KeyFile file{ job_.at("trace") };
    std::vector<uint64_t> keys;
    while(file.next(keys)) {
      rows_.resize(keys.size() * layout_.words());
      s.push(layout_, keys, rows_.data(), 0, [&](size_t i, float* row, uint64_t digest) {
        load_row(layout_, keys[i], row);
        return digest;
      });
    }
    result_["load_ms"] = ms_since(start);
  }

  // read_trace reads all mini-batches, before memory and device are measured.
  void read_trace() {
    KeyFile file{ job_.at("trace") };
    for(std::vector<uint64_t> keys; file.next(keys);) {
      trace_.push_back(keys);
      rows_.resize(std::max(rows_.size(), keys.size() * layout_.words()));
    }
  }

  void play(Store& s) {
    std::vector<double> pull, push;
    std::vector<int64_t> reads, read_bytes, write_bytes;
    uint64_t digest = 0;
    before_ = {};
    DeviceBytes then = before_;
    int64_t reads_then = device_reads;
    for(const auto& keys : trace_) {
      auto start = Clock::now();
      s.pull(layout_, keys, rows_.data());
      pull.push_back(ms_since(start));
      start = Clock::now();
      digest = s.push(layout_, keys, rows_.data(), digest,
                      [&](size_t, float* row, uint64_t d) { return update(layout_, row, d); });
      push.push_back(ms_since(start));
      DeviceBytes now;
      int64_t reads_now = device_reads;
      reads.push_back(reads_now - reads_then);
      read_bytes.push_back(now.read - then.read);
      write_bytes.push_back(now.written - then.written);
      then = now;
      reads_then = reads_now;
    }
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
    result_["pull_ms"] = pull;
    result_["push_ms"] = push;
    result_["device_reads"] = reads;
    result_["read_bytes"] = read_bytes;
    result_["write_bytes"] = write_bytes;
    result_["digest"] = text;
  }

  const json& job_;
  const Flags& flags_;
  Layout layout_;
  json result_;
  DeviceBytes before_; // the mini-batches
  std::vector<std::vector<uint64_t>> trace_;
  std::vector<float> rows_;
};

} // namespace

int main(int argc, char** argv) {
  json result;
  try {
    Flags flags{ argc, argv };
    json job = json::parse(std::cin);
    result = Player{ job, flags }.run();
  } catch(const Unavailable& e) {
    result = { { "unavailable", e.what() } };
  } catch(const std::exception& e) {
    result = { { "error", e.what() } };
  }
  std::cout << result << std::endl;
}
