// The little that the native tests need: a check that says where and why it failed.
#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace movie::test {

[[noreturn]] inline void fail(const char* file, int line, const std::string& text) {
    throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + text);
}

// Runs the body of a test program; an exception that gets out of it is a failure.
template <class Body>
int run(const char* name, Body body) {
    try {
        body();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", name, error.what());
        return 1;
    }
    std::printf("%s: passed\n", name);
    return 0;
}

}  // namespace movie::test

#define CHECK(condition) CHECK_SAYING(condition, "")
// `text`: what a person needs to see the failure again.
#define CHECK_SAYING(condition, text) \
    ((condition) ? static_cast<void>(0) : ::movie::test::fail(__FILE__, __LINE__, std::string(#condition " ") + (text)))
