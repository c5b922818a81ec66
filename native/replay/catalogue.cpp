#include "replay/catalogue.h"

#include <algorithm>
#include <stdexcept>

#include "allocator/configured.h"
#include "baselines/expandable/expandable_allocator.h"
#include "baselines/gmlake/gmlake_allocator.h"
#include "baselines/native/native_allocator.h"

namespace movie {
namespace {

struct Maker {
    AllocatorEntry entry;
    std::unique_ptr<Allocator> (*make)(Driver& driver, const AllocatorOptions& options);
};

std::unique_ptr<Allocator> make_native(Driver& driver, const AllocatorOptions& options) {
    return std::make_unique<NativeAllocator>(driver, native_settings(options));
}

std::unique_ptr<Allocator> make_expandable(Driver& driver, const AllocatorOptions& options) {
    return std::make_unique<ExpandableAllocator>(driver, native_settings(options));
}

std::unique_ptr<Allocator> make_gmlake(Driver& driver, const AllocatorOptions& options) {
    return std::make_unique<GmlakeAllocator>(driver, gmlake_settings(options));
}

std::unique_ptr<Allocator> make_movie(Driver& driver, const AllocatorOptions& options) {
    return std::make_unique<MovieAllocator>(driver, movie_config(Policy::automatic, options));
}

std::unique_ptr<Allocator> make_movie_lean(Driver& driver, const AllocatorOptions& options) {
    return std::make_unique<MovieAllocator>(driver, movie_config(Policy::lean, options));
}

const std::vector<std::string> kNativeOptions = {"tie",
                                                 "max_split_size",
                                                 "max_non_split_rounding",
                                                 "large_segment_size",
                                                 "roundup_power2_divisions",
                                                 "garbage_collection_threshold",
                                                 "memory_fraction",
                                                 "rerun_search"};

// A new allocator is one entry here.
const std::vector<Maker>& makers() {
    static const std::vector<Maker> all{
        {{.name = "native",
          .summary = "PyTorch's native caching allocator, 2.6 and later, without expandable segments",
          .options = kNativeOptions},
         make_native},
        {{.name = "expandable",
          .summary = "the same with expandable_segments:True, 2.6 to 2.15",
          .options = kNativeOptions},
         make_expandable},
        {{.name = "gmlake",
          .summary = "GMLake as released for PyTorch 2.0: stitches free blocks of a stream, largest first",
          .options = {"frag", "reuse", "auto_gc"}},
         make_gmlake},
        {{.name = "movie",
          .summary = "MOVie: grows while the card has room, then puts free pages side by side",
          .options = movie_options()},
         make_movie},
        {{.name = "movie-lean",
          .summary = "MOVie, policy lean: every free page is used before memory grows",
          .options = movie_options()},
         make_movie_lean},
    };
    return all;
}

std::string list_of(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "none" : text;
}

}  // namespace

const std::vector<AllocatorEntry>& catalogue() {
    static const std::vector<AllocatorEntry> entries = [] {
        std::vector<AllocatorEntry> all;
        for (const Maker& maker : makers()) all.push_back(maker.entry);
        return all;
    }();
    return entries;
}

std::unique_ptr<Allocator> make_allocator(Driver& driver, const std::string& name, const AllocatorOptions& options) {
    std::vector<std::string> names;
    for (const Maker& maker : makers()) {
        names.push_back(maker.entry.name);
        if (maker.entry.name != name) continue;
        for (const auto& [key, value] : options)
            if (std::find(maker.entry.options.begin(), maker.entry.options.end(), key) == maker.entry.options.end())
                throw std::invalid_argument(name + " has no option '" + key +
                                            "'; it takes: " + list_of(maker.entry.options));
        return maker.make(driver, options);
    }
    throw std::invalid_argument("no allocator is called '" + name + "'; there are: " + list_of(names));
}

}  // namespace movie
