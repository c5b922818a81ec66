// movie._core.testing: allocators that exist to test the validator and the tests of allocators.
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <tuple>

#include "allocator/movie_allocator.h"
#include "api/bindings.h"
#include "api/columns.h"
#include "replay/catalogue.h"
#include "replay/replay.h"
#include "replay/validator/testing/broken_allocators.h"
#include "replay/validator/testing/scripted_allocator.h"
#include "replay/validator/watch.h"

namespace nb = nanobind;

namespace movie {

namespace {

// The part of a watched reference allocator that torch would tell it by other ways than the Allocator interface.
struct ReferenceControls {
    testing::ReferenceAllocator* allocator;
};

// Likewise of MOVie.
struct MovieControls {
    MovieAllocator* allocator;
    Watch* watch;
};

// The validator hears of a rewind as of the frees and requests that it stands for.
void rewind(MovieControls& controls, const PoolMoment& to) {
    const auto lacks = [](const PoolMoment& moment, const PoolMoment::Block& block) {
        return std::find(moment.blocks.begin(), moment.blocks.end(), block) == moment.blocks.end();
    };
    Validator& validator = controls.watch->validator();
    const PoolMoment before = controls.allocator->moment(to.pool);
    for (const PoolMoment::Block& block : before.blocks)
        if (lacks(to, block)) (void)validator.before_free(block.address);
    (void)controls.allocator->rewind(to);
    for (const PoolMoment::Block& block : to.blocks)
        if (lacks(before, block))
            validator.allocated(block.address, {.bytes = block.requested, .stream = block.stream, .pool = to.pool});
    controls.watch->check_all();
}

struct Script {
    testing::ScriptedAllocator* allocator;
};

}  // namespace

void bind_testing(nb::module_& m) {
    nb::module_ testing = m.def_submodule("testing", "Allocators for tests of tests.");

    testing.def(
        "flaws",
        [] {
            std::vector<std::tuple<std::string, int, std::string>> list;
            for (const testing::Flaw& flaw : testing::flaws()) list.emplace_back(flaw.name, flaw.invariant, flaw.what);
            return list;
        },
        "(name, number of the invariant that it breaks, what it does) of each broken allocator.");

    nb::class_<ReferenceControls>(testing, "ReferenceControls")
        .def(
            "set_capturing", [](ReferenceControls& self, bool on) { self.allocator->set_capturing(on); }, nb::arg("on"))
        .def("pin", [](ReferenceControls& self, Address address) { self.allocator->pin(address); }, nb::arg("address"));
    testing.def(
        "watch_reference",
        [](nb::object watch, const std::string& flaw) {
            Watch& self = nb::cast<Watch&>(watch);
            auto allocator = testing::make_broken(self.driver(), flaw);
            ReferenceControls controls{allocator.get()};
            return nb::make_tuple(nb::cast(self.watch(std::move(allocator)), nb::rv_policy::reference_internal, watch),
                                  nb::cast(controls));
        },
        nb::arg("watch"), nb::arg("flaw") = "",
        "(allocator, controls): a simple correct allocator, or the one with that flaw, under a Watch.");

    nb::class_<PoolMoment>(testing, "PoolMoment", "What lives in a pool at some moment.")
        .def_prop_ro(
            "blocks",
            [](const PoolMoment& self) {
                std::vector<std::tuple<Address, Bytes, Stream, bool>> blocks;
                for (const PoolMoment::Block& block : self.blocks)
                    blocks.emplace_back(block.address, block.requested, block.stream, block.view != 0);
                return blocks;
            },
            "(address, bytes asked for, stream, whether it lies in a view) of each, by address.");
    nb::class_<MovieControls>(testing, "MovieControls",
                              "What torch will tell MOVie by other ways than the allocator interface.")
        .def("begin_capture", [](MovieControls& self) { self.allocator->begin_capture(); })
        .def("end_capture", [](MovieControls& self) { self.allocator->end_capture(); })
        .def(
            "pin", [](MovieControls& self, Address address) { self.allocator->pin(address); }, nb::arg("address"))
        .def(
            "on_shortage",
            [](MovieControls& self, std::function<Bytes(Bytes)> reclaim) {
                self.allocator->on_shortage(std::move(reclaim));
            },
            nb::arg("reclaim"), "Asked before a request fails; returns how many bytes of the card came free.")
        .def(
            "moment", [](MovieControls& self, PoolId pool) { return self.allocator->moment(pool); }, nb::arg("pool"),
            "What lives in the pool.")
        .def("rewind", &rewind, nb::arg("moment"), "Back to an earlier moment of its pool.")
        .def(
            "lives_exactly",
            [](const MovieControls& self, PoolId pool, const std::vector<Address>& blocks) {
                return self.allocator->lives_exactly(pool, {blocks.begin(), blocks.end()});
            },
            nb::arg("pool"), nb::arg("blocks"), "Whether these are all blocks that live in the pool.")
        .def(
            "history",
            [](const MovieControls& self) {
                std::vector<std::tuple<std::string, Address, Bytes, Stream, PoolId, std::uint64_t>> events;
                for (const HistoryEvent& event : self.allocator->history())
                    events.emplace_back(std::string(name_of(event.kind)), event.address, event.size, event.stream,
                                        event.pool, event.number);
                return events;
            },
            "(kind, address, size, stream, pool, number) of the last events, oldest first.");
    testing.def(
        "watch_movie",
        [](nb::object watch, const std::string& name, const AllocatorOptions& options) {
            Watch& self = nb::cast<Watch&>(watch);
            auto allocator = make_allocator(self.driver(), name, options);
            auto* movie = dynamic_cast<MovieAllocator*>(allocator.get());
            if (movie == nullptr) throw std::invalid_argument(name + " is not a MOVie allocator");
            return nb::make_tuple(nb::cast(self.watch(std::move(allocator)), nb::rv_policy::reference_internal, watch),
                                  nb::cast(MovieControls{movie, &self}, nb::rv_policy::copy, watch));
        },
        nb::arg("watch"), nb::arg("name") = "movie", nb::arg("options") = AllocatorOptions{},
        "(allocator, controls): MOVie under a Watch, with what is not in the allocator interface.");

    nb::class_<Script>(testing, "Script")
        .def(
            "answer", [](Script& self, Address address) { self.allocator->answer(address); }, nb::arg("address"),
            "What the next malloc() returns; 0: it runs out of memory.");
    testing.def(
        "watch_script",
        [](nb::object watch) {
            Watch& self = nb::cast<Watch&>(watch);
            auto allocator = std::make_unique<testing::ScriptedAllocator>();
            Script script{allocator.get()};
            return nb::make_tuple(nb::cast(self.watch(std::move(allocator)), nb::rv_policy::reference_internal, watch),
                                  nb::cast(script));
        },
        nb::arg("watch"), "(allocator, script): an allocator whose answers a test gives, under a Watch.");

    testing.def(
        "replay_reference",
        [](const TraceColumns& trace, const ModelOptions& device, const std::string& flaw, bool validate) {
            ReplayOptions options;
            options.device = device;
            options.validate = validate;
            return replay(trace.view, [&](Driver& driver) { return testing::make_broken(driver, flaw); }, options);
        },
        nb::arg("trace"), nb::arg("device") = ModelOptions{}, nb::arg("flaw") = "", nb::arg("validate") = true,
        "As movie._core.replay, with the reference allocator or one with a flaw.");
}

}  // namespace movie
