#include "api/stacks.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <vector>

namespace nb = nanobind;

namespace movie {

namespace {

using Frame = std::pair<PyObject*, int>;  // a code object that is kept, and a line
using Stack = std::vector<Frame>;

struct Stacks {
    std::mutex mutex;
    std::map<Stack, std::uint64_t> numbers;
    std::vector<const Stack*> by_number{nullptr};

    static Stacks& get() {
        static auto* const stacks = new Stacks();  // never destroyed: its code objects outlive the interpreter
        return *stacks;
    }
};

// Public since Python 3.13, under another name before.
bool finalizing() {
    using Query = int (*)();
    static const auto query = [] {
        void* found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
        if (found == nullptr) found = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
        return reinterpret_cast<Query>(found);
    }();
    return query != nullptr && query() != 0;
}

Stack walk() {
    Stack stack;
    PyObject* frame = reinterpret_cast<PyObject*>(PyEval_GetFrame());
    Py_XINCREF(frame);
    while (frame != nullptr && frame != Py_None) {
        auto* const python_frame = reinterpret_cast<PyFrameObject*>(frame);
        PyObject* const code = reinterpret_cast<PyObject*>(PyFrame_GetCode(python_frame));
        stack.emplace_back(code, PyFrame_GetLineNumber(python_frame));
        PyObject* const back = PyObject_GetAttrString(frame, "f_back");
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return stack;
}

}  // namespace

std::uint64_t current_stack() {
    if (Py_IsInitialized() == 0 || finalizing() || PyGILState_GetThisThreadState() == nullptr) return 0;
    const PyGILState_STATE state = PyGILState_Ensure();
    // A destructor may have brought us here while an exception is on its way.
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    Stack stack = walk();
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    std::uint64_t number = 0;
    if (!stack.empty()) {
        Stacks& stacks = Stacks::get();
        const std::lock_guard lock(stacks.mutex);
        const auto [found, fresh] = stacks.numbers.try_emplace(stack, stacks.by_number.size());
        if (fresh)
            stacks.by_number.push_back(&found->first);
        else
            for (const Frame& frame : stack) Py_DECREF(frame.first);
        number = found->second;
    }
    PyGILState_Release(state);
    return number;
}

nb::list stack_frames(std::uint64_t number) {
    Stacks& stacks = Stacks::get();
    const Stack* stack = nullptr;
    {
        const std::lock_guard lock(stacks.mutex);
        if (number < stacks.by_number.size()) stack = stacks.by_number[number];
    }
    nb::list frames;
    if (stack != nullptr)
        for (const Frame& frame : *stack) frames.append(nb::make_tuple(nb::borrow(frame.first), frame.second));
    return frames;
}

}  // namespace movie
