#include "phantom/device/call_site.h"

#include <mutex>
#include <string_view>

#include "phantom/device/codes.h"

namespace movie::phantom {

namespace {

struct Sites {
    std::mutex mutex;
    std::vector<CallSite*> all;
};

Sites& sites() {
    static auto* sites = new Sites;  // outlives every thread that may still call
    return *sites;
}

// What the functions that obtain something answer when there is none left; the others fail for a reason of their own.
int likely_code(std::string_view function) {
    for (const char* obtains :
         {"Alloc", "Malloc", "MemCreate", "AddressReserve", "cudaHostRegister", "GraphInstantiate"})
        if (function.find(obtains) != std::string_view::npos) return kOutOfMemory;
    return kUnknown;
}

}  // namespace

CallSite::CallSite(const char* name) : name_(name) {
    const std::scoped_lock lock(sites().mutex);
    sites().all.push_back(this);
}

std::vector<CallSite*> CallSite::all() {
    const std::scoped_lock lock(sites().mutex);
    return sites().all;
}

void CallSite::arm(const std::vector<Fault>& faults) {
    armed_ = true;
    for (const Fault& fault : faults)
        if (fault.function == name_) faults_.push_back(fault);
}

int CallSite::injected() {
    for (const Fault& fault : faults_)
        if (fault.call == 0 || fault.call == calls_) {
            ++faulted_;
            return fault.code != 0 ? fault.code : likely_code(name_);
        }
    return 0;
}

}  // namespace movie::phantom
