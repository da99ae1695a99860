-- Links theLink to theProgram, or removes the link if theProgram is empty.
on run {theFolder, theLink, theProgram}
	if theProgram is "" then
		set theCommand to "/bin/rm -f " & quoted form of theLink
	else
		set theCommand to "/bin/mkdir -p " & quoted form of theFolder & " && /bin/ln -sfn " & quoted form of theProgram & " " & quoted form of theLink
	end if
	do shell script theCommand with prompt "Tierbar changes the command " & theLink & "." with administrator privileges
end run
