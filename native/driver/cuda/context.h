// The primary context of a device, the one that PyTorch and every library around it use, and how a thread enters it.
#pragma once

#include "driver/cuda/library.h"

namespace movie::cuda {

class PrimaryContext {
  public:
    // Initialises the driver and, if nobody has, the device. Throws Unavailable.
    explicit PrimaryContext(int ordinal);

    [[nodiscard]] Device device() const { return device_; }
    [[nodiscard]] Context context() const { return context_; }

  private:
    Device device_ = 0;
    Context context_ = nullptr;  // never given back: torch holds it as long as the process lives
};

// For as long as it lives the calling thread works in the context. Threads of autograd and of data loaders come with no
// context or with that of another device. Where the driver refuses, the calls that
// follow fail, each with its reason.
class Entered {
  public:
    explicit Entered(const PrimaryContext& primary);
    ~Entered();
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

  private:
    bool pushed_ = false;
};

// While a thread captures a graph, calls that could disturb it are refused to all threads that have not said that they
// know what they do. Obtaining and mapping memory disturbs no capture.
class RelaxedCapture {
  public:
    RelaxedCapture() { (void)Library::get().exchange_capture_mode(&mode_); }
    ~RelaxedCapture() { (void)Library::get().exchange_capture_mode(&mode_); }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

  private:
    int mode_ = kCaptureModeRelaxed;
};

}  // namespace movie::cuda
