// Environment variables. A value that means nothing is an error which names the variable.
#pragma once

#include <initializer_list>
#include <string>

namespace vkd {

// The value of a variable, "" where it is unset. Throws where it is neither empty nor one of the choices.
std::string read_choice(const char* name, std::initializer_list<const char*> choices);
// Whether it is 1; throws where it is neither empty, 0 nor 1.
bool read_switch(const char* name);

// A switch for users, who write it as they do those that Python reads: 1, true, yes, on and their opposites.
enum class Setting { unset, off, on };
Setting read_setting(const char* name);

}  // namespace vkd
