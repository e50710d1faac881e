// Environment variables. An invalid value raises an error that names the variable.
#pragma once

#include <initializer_list>
#include <string>

namespace vkd {

// Returns the value of a variable, "" if it is unset. Throws unless it is empty or one of the choices.
std::string read_choice(const char* name, std::initializer_list<const char*> choices);
// Returns whether the value is 1. Throws unless it is empty, 0 or 1.
bool read_switch(const char* name);

// A switch for users, spelled like Python's own switches: 1, true, yes, on, or their opposites.
enum class Setting { unset, off, on };
Setting read_setting(const char* name);

}  // namespace vkd
