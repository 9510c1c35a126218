# Joins the parts of the runtime into the one file that is compiled and shipped, isotone.hpp: their
# includes of one another and `#pragma once` go, and a guard by name comes, as two exports bring two
# copies of the file.
set(runtime_parts opening models sorting_networks state vectors arithmetic sort dense sort_beside_dense
                  pointwise inputs copies look_up steps scoring fixed closing)

function(join_runtime out)
  set(joined "")
  foreach(part IN LISTS runtime_parts)
    set(path "${CMAKE_CURRENT_SOURCE_DIR}/runtime/${part}.hpp")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
    file(READ "${path}" text)
    string(REGEX REPLACE "#include \"[a-z_]+\\.hpp\"\n" "" text "${text}")
    if(joined STREQUAL "")
      string(REPLACE "#pragma once\n" "#if !defined(ISOTONE_HPP)\n#define ISOTONE_HPP\n" text "${text}")
    else()
      string(REGEX REPLACE "#pragma once\n+" "\n" text "${text}")
    endif()
    string(APPEND joined "${text}\n")
  endforeach()
  file(CONFIGURE OUTPUT "${out}" CONTENT "${joined}#endif\n" @ONLY)
endfunction()
